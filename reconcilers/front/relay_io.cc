#include <netinet/tcp.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

#include "api/base/log.h"
#include "reconcilers/front/relay.h"

namespace lockkeeper::front {
namespace {

// Work of one wake-up, so that a bulk list cannot starve thousands of watches; level-triggered epoll brings the rest.
constexpr int kMaxAccepts = 64;
constexpr int kMaxReads = 16;
constexpr int64_t kFaminePause = 100'000;
constexpr int64_t kLinger = 1'000'000;

bool IsFamine(int error) { return error == EMFILE || error == ENFILE || error == ENOBUFS || error == ENOMEM; }

// Whether the connection can still deliver what was sent.
bool CanDeliver(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return false;
  return info.tcpi_state == TCP_ESTABLISHED || info.tcpi_state == TCP_CLOSE_WAIT || info.tcpi_state == TCP_FIN_WAIT1 ||
         info.tcpi_state == TCP_CLOSING || info.tcpi_state == TCP_LAST_ACK;
}

}  // namespace

void Relay::Handle(uint64_t tag, uint32_t events) {
  if (tag == kListenerTag) {
    Accept();
    return;
  }
  auto* c = reinterpret_cast<Connection*>(tag & ~uint64_t{1});
  if (c->client < 0) return;  // ended earlier in this turn
  if ((tag & 1) == 0) {
    OnClient(c, events);
  } else {
    OnBackend(c, events);
  }
}

void Relay::Accept() {
  if (!listener_) return;
  for (int i = 0; i < kMaxAccepts && live_ < limits_.max_connections && held_ < limits_.hold_connections; ++i) {
    const int fd = ::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) {
      if (IsFamine(errno)) {
        ++metrics_.accept_errors;
        accept_again_at_ = now_ + kFaminePause;
        LogWarn("accepting pauses: no descriptors or memory left",
                {{"error", std::strerror(errno)}, {"connections", live_}});
        return;
      }
      if (errno == EAGAIN || errno == EWOULDBLOCK) return;
      // The connection died in the queue (ECONNABORTED and the network's own): the next one.
      continue;
    }
    ++metrics_.accepted;
    TuneSocket(fd, limits_.keepalive);
    Connection* c = NewConnection(fd);
    Park(c);
    if (held_ == 1) ReleaseHeld();  // the common case: nobody waits before it
    UpdateInterest(c);
    Arm(c);
  }
}

void Relay::DialCurrent(Connection* c) {
  if (current_ == nullptr) {
    Apply(c, Event::kTargetGone);
    return;
  }
  if (c->state.tries <= 1 || c->dialing_since == 0) c->dialing_since = now_;
  c->phase_since = now_;
  c->counted_on = current_;
  ++current_->dialing;
  ++dialing_;
  int error = 0;
  UniqueFd fd = Dial(current_->address, &error);
  if (!fd || (error != 0 && error != EINPROGRESS)) {
    ++metrics_.dial_failures[error];
    Apply(c, Event::kDialFailed);
    return;
  }
  TuneSocket(fd.get(), limits_.keepalive);
  c->backend = fd.Release();
  c->backend_mask = 0;
  if (error == 0) FinishDial(c);
}

void Relay::FinishDial(Connection* c) {
  const int error = DialOutcome(c->backend);
  if (error != 0) {
    ++metrics_.dial_failures[error];
    Apply(c, Event::kDialFailed);
    return;
  }
  metrics_.dial.Observe(static_cast<double>(now_ - c->phase_since) / 1e6);
  Backend* b = c->counted_on;
  --b->dialing;
  --dialing_;
  ++b->open;
  ++b->total;
  c->counted_open = true;
  c->held_since = 0;
  Apply(c, Event::kDialOk);
}

void Relay::OnClient(Connection* c, uint32_t events) {
  const bool error = (events & (EPOLLERR | EPOLLHUP)) != 0;
  switch (c->state.phase) {
    case Phase::kHeld:
      ++metrics_.client_left_held;
      Apply(c, error ? Event::kClientReset : Event::kClientLeft);
      return;
    case Phase::kDialing:
    case Phase::kBackoff:
      if (error) Apply(c, Event::kClientReset);
      return;
    case Phase::kClosed: return;
    case Phase::kOpen: break;
  }
  const Interest interest = ClientInterest(c->state);
  if (interest.out && (error || (events & EPOLLOUT) != 0)) Flush(c, false);
  if (interest.in && c->state.phase == Phase::kOpen && (error || (events & EPOLLIN) != 0)) Pump(c, true);
  if (error && !interest.in && !interest.out) Unwatched(c, true);
}

void Relay::OnBackend(Connection* c, uint32_t events) {
  if (c->backend < 0) return;
  if (c->state.phase == Phase::kDialing) {
    FinishDial(c);
    return;
  }
  if (c->state.phase != Phase::kOpen) return;
  const bool error = (events & (EPOLLERR | EPOLLHUP)) != 0;
  const Interest interest = BackendInterest(c->state);
  if (interest.out && (error || (events & EPOLLOUT) != 0)) Flush(c, true);
  if (interest.in && c->state.phase == Phase::kOpen && (error || (events & EPOLLIN) != 0)) Pump(c, false);
  if (error && !interest.in && !interest.out) Unwatched(c, false);
}

// An error on a side that nothing is asked of. A side that has ended and is still written to is gone for good; a side
// whose bytes wait behind a slow reader keeps its turn: it is muted, and its error is read after its bytes.
void Relay::Unwatched(Connection* c, bool client_side) {
  const Flow& from = client_side ? c->state.up : c->state.down;
  const Flow& to = client_side ? c->state.down : c->state.up;
  if (from.ended && !from.stuck && !to.closed) {
    Apply(c, client_side ? Event::kDownWriteFailed : Event::kUpWriteFailed);
    return;
  }
  uint8_t& mask = client_side ? c->client_mask : c->backend_mask;
  if ((mask & kRegistered) == 0) return;
  ::epoll_ctl(epoll_, EPOLL_CTL_DEL, client_side ? c->client : c->backend, nullptr);
  mask = kMuted;
}

void Relay::Pump(Connection* c, bool up) {
  for (int i = 0; i < kMaxReads; ++i) {
    const int from = up ? c->client : c->backend;
    const int to = up ? c->backend : c->client;
    const ssize_t n = ::recv(from, buffer_.data(), buffer_.size(), MSG_DONTWAIT);
    if (n == 0) {
      Apply(c, up ? Event::kUpEof : Event::kDownEof);
      return;
    }
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno != EAGAIN && errno != EWOULDBLOCK) Apply(c, up ? Event::kUpReadFailed : Event::kDownReadFailed);
      return;
    }
    if (up) {
      if (c->server_spoke_last || c->last_client == 0) c->client_turns += c->client_turns < UINT8_MAX ? 1 : 0;
      c->server_spoke_last = false;
      c->last_client = now_;
      metrics_.bytes_up += n;
    } else {
      c->server_spoke_last = true;
      c->last_server = now_;
      metrics_.bytes_down += n;
    }
    size_t sent = 0;
    while (sent < static_cast<size_t>(n)) {
      const ssize_t m = ::send(to, buffer_.data() + sent, static_cast<size_t>(n) - sent, MSG_DONTWAIT | MSG_NOSIGNAL);
      if (m >= 0) {
        sent += static_cast<size_t>(m);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        Keep(c, up, buffer_.data() + sent, static_cast<size_t>(n) - sent);
        Apply(c, up ? Event::kUpStuck : Event::kDownStuck);
        return;
      } else if (errno != EINTR) {
        Apply(c, up ? Event::kUpWriteFailed : Event::kDownWriteFailed);
        return;
      }
    }
    // A short read has emptied the socket; an end behind it comes as the next event.
    if (static_cast<size_t>(n) < buffer_.size()) return;
  }
}

void Relay::Flush(Connection* c, bool up) {
  Pending*& p = up ? c->up : c->down;
  while (p != nullptr && p->offset < p->size) {
    const ssize_t m =
        ::send(up ? c->backend : c->client, p->data() + p->offset, p->size - p->offset, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (m >= 0) {
      p->offset += static_cast<uint32_t>(m);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return;
    } else if (errno != EINTR) {
      Apply(c, up ? Event::kUpWriteFailed : Event::kDownWriteFailed);
      return;
    }
  }
  Free(&p);
  // A flush is the connection's life too: a slow reader is no idler.
  (up ? c->last_client : c->last_server) = now_;
  Apply(c, up ? Event::kUpFlushed : Event::kDownFlushed);
}

void Relay::Keep(Connection* c, bool up, const char* data, size_t size) {
  void* memory = std::malloc(sizeof(Pending) + size);
  LK_CHECK(memory != nullptr);
  auto* p = new (memory) Pending{.size = static_cast<uint32_t>(size)};
  std::memcpy(p->data(), data, size);
  (up ? c->up : c->down) = p;
}

void Relay::Free(Pending** pending) {
  std::free(*pending);
  *pending = nullptr;
}

void Relay::SetMask(Connection* c, bool client_side, const Interest& interest) {
  uint8_t& mask = client_side ? c->client_mask : c->backend_mask;
  const int fd = client_side ? c->client : c->backend;
  if (fd < 0) return;
  const auto wanted = static_cast<uint8_t>(kRegistered | (interest.in ? kIn : 0) | (interest.out ? kOut : 0) |
                                           (interest.left ? kLeft : 0));
  if (mask == wanted || (mask == kMuted && wanted == kRegistered)) return;
  epoll_event event{};
  event.events = (interest.in ? EPOLLIN : 0u) | (interest.out ? EPOLLOUT : 0u) | (interest.left ? EPOLLRDHUP : 0u);
  event.data.u64 = reinterpret_cast<uint64_t>(c) | (client_side ? 0u : 1u);
  const int how = (mask & kRegistered) != 0 ? EPOLL_CTL_MOD : EPOLL_CTL_ADD;
  if (::epoll_ctl(epoll_, how, fd, &event) != 0) {
    // Only a lack of kernel memory or of watches is left as a cause: this connection cannot be served.
    LogError("a connection cannot be watched", {{"error", std::strerror(errno)}});
    ::shutdown(fd, SHUT_RDWR);
    return;
  }
  mask = wanted;
}

void Relay::UpdateInterest(Connection* c) {
  if (c->client < 0) return;
  SetMask(c, true, ClientInterest(c->state));
  SetMask(c, false, BackendInterest(c->state));
}

void Relay::CloseBackend(Connection* c) {
  if (c->backend >= 0) ::close(c->backend);
  c->backend = -1;
  c->backend_mask = 0;
}

void Relay::CloseSockets(Connection* c, bool reset, bool at_once) {
  if (reset) {
    ResetWhenSent(c->client, at_once);
    if (c->backend >= 0) ResetWhenSent(c->backend, at_once);
  } else {
    ::close(c->client);
    if (c->backend >= 0) ::close(c->backend);
  }
  c->client = -1;
  c->backend = -1;
}

// A reset throws away what the kernel has not delivered yet; the last words of a side that was reset (an error answer,
// say) still belong to the other.
void Relay::ResetWhenSent(int fd, bool at_once) {
  UniqueFd owned(fd);
  if (!at_once && UnackedBytes(fd) > 0 && CanDeliver(fd)) {
    ::epoll_ctl(epoll_, EPOLL_CTL_DEL, fd, nullptr);
    lingering_.push_back({std::move(owned), now_ + kLinger});
    return;
  }
  CloseWithReset(std::move(owned));
}

void Relay::UpdateAccepting() {
  if (!listener_) return;
  const bool wanted = live_ < limits_.max_connections && held_ < limits_.hold_connections && now_ >= accept_again_at_;
  if (wanted == accepting_) return;
  epoll_event event{};
  event.events = wanted ? EPOLLIN : 0u;
  event.data.u64 = kListenerTag;
  if (::epoll_ctl(epoll_, EPOLL_CTL_MOD, listener_.get(), &event) != 0) return;
  accepting_ = wanted;
  if (wanted) {
    metrics_.accept_paused_micros += now_ - paused_since_;
  } else {
    paused_since_ = now_;
  }
}

}  // namespace lockkeeper::front
