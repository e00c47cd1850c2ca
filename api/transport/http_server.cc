#include "api/transport/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <list>

#include "api/base/log.h"
#include "api/base/sync.h"
#include "api/base/unique_fd.h"
#include "api/transport/channel.h"
#include "api/transport/http_framer.h"
#include "api/transport/http_wire.h"
#include "api/transport/listener.h"
#include "api/transport/tls.h"

namespace lockkeeper {

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStackFactor = 8;  // instrumented frames are larger
#else
constexpr size_t kStackFactor = 1;
#endif

UniqueFd NewEvent() {
  UniqueFd fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  LK_CHECK(static_cast<bool>(fd));
  return fd;
}

void Signal(const UniqueFd& event) { (void)!eventfd_write(event.get(), 1); }

std::string PeerName(const sockaddr_storage& address) {
  char text[INET6_ADDRSTRLEN] = "";
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &in.sin_addr, text, sizeof text);
    return std::string(text) + ":" + std::to_string(ntohs(in.sin_port));
  }
  if (address.ss_family == AF_INET6) {
    const auto& in6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof text);
    return "[" + std::string(text) + "]:" + std::to_string(ntohs(in6.sin6_port));
  }
  return "unix";
}

}  // namespace

std::string HttpRequest::Header(std::string_view lower_case_name) const {
  const auto it = headers.find(std::string(lower_case_name));
  return it == headers.end() ? std::string() : it->second;
}

std::string HttpRequest::Query(std::string_view name) const {
  const auto it = query.find(std::string(name));
  return it == query.end() ? std::string() : it->second;
}

class HttpServer::Impl {
 public:
  Impl(HttpServerConfig config, Handler handler)
      : config_(std::move(config)),
        stop_event_(NewEvent()),
        drain_event_(NewEvent()),
        accept_event_(NewEvent()),
        framer_({config_.read_timeout, config_.write_timeout, config_.max_body_bytes, stop_event_.get(), &stopping_,
                 &draining_},
                std::move(handler)) {}

  ~Impl() { Stop(); }

  Status Listen() LK_EXCLUDES(mutex_) {
    MutexLock lock(mutex_);
    if (listening_) return {};
    if (config_.tls != nullptr && tls_context_ == nullptr) {
      LK_ASSIGN_OR_RETURN(TlsContext context, NewServerContext(*config_.tls));
      tls_context_ = std::move(context);
    }
    LK_RETURN_IF_ERROR(config_.unix_path.empty() ? listener_.ListenTcp(config_.address, config_.port)
                                                 : listener_.ListenUnix(config_.unix_path));
    listening_ = true;
    return {};
  }

  Status Start() {
    LK_RETURN_IF_ERROR(Listen());
    MutexLock lock(mutex_);
    if (acceptor_started_ || stopping_.load()) return {};
    if (pthread_create(&acceptor_, nullptr, &Impl::AcceptorMain, this) != 0) {
      return {Code::kExhausted, "start the accepting thread: no more threads"};
    }
    acceptor_started_ = true;
    return {};
  }

  int port() const { return listener_.port(); }

  Status SetTls(const TlsServerConfig& tls) LK_EXCLUDES(mutex_) {
    LK_ASSIGN_OR_RETURN(TlsContext context, NewServerContext(tls));
    MutexLock lock(mutex_);
    tls_context_ = std::move(context);
    return {};
  }

  void CloseListener() {
    closing_listener_.store(true);
    Signal(accept_event_);
    MutexLock lock(mutex_);
    if (!acceptor_started_) {
      listener_.Close();
      listener_closed_ = true;
    }
    while (listening_ && !listener_closed_) listener_gone_.Wait(mutex_);
  }

  void DrainConnections() {
    draining_.store(true);
    Signal(drain_event_);
  }

  void Stop() {
    stopping_.store(true);
    Signal(stop_event_);
    Signal(drain_event_);  // an idle connection waits on this one alone
    Signal(accept_event_);
    {
      MutexLock lock(mutex_);
      if (stop_running_) {
        while (!stopped_) listener_gone_.Wait(mutex_);
        return;
      }
      stop_running_ = true;
    }
    if (acceptor_started_) {
      pthread_join(acceptor_, nullptr);
    } else {
      listener_.Close();
    }
    MutexLock lock(mutex_);
    listener_closed_ = true;
    stopped_ = true;
    listener_gone_.NotifyAll();
  }

  size_t open_connections() const {
    MutexLock lock(mutex_);
    return connections_.size() - finished_.size();
  }

 private:
  struct Connection {
    Impl* server;
    UniqueFd fd;
    pthread_t thread{};
    std::string peer;
    uid_t peer_uid = static_cast<uid_t>(-1);
    uint64_t number = 0;
    std::list<Connection>::iterator self;
  };

  static void* AcceptorMain(void* self) {
    static_cast<Impl*>(self)->AcceptLoop();
    return nullptr;
  }

  static void* ConnectionMain(void* raw) {
    auto* connection = static_cast<Connection*>(raw);
    Impl& server = *connection->server;
    server.Run(*connection);
    MutexLock lock(server.mutex_);
    server.finished_.push_back(connection->self);
    Signal(server.accept_event_);
    return nullptr;
  }

  // Accepts, joins what has finished, and at the end joins everything. Sleeps in poll() without a timeout
  // unless descriptors ran out.
  void AcceptLoop() {
    bool listener_open = true;
    bool exhausted = false;
    while (!stopping_.load()) {
      Reap();
      if (listener_open && closing_listener_.load()) {
        CloseListenerHere();
        listener_open = false;
      }
      const bool accepting = listener_open && !exhausted && open_connections() < config_.max_connections;
      pollfd fds[2] = {{accept_event_.get(), POLLIN, 0}, {listener_.fd(), POLLIN, 0}};
      const int n = poll(fds, accepting ? 2 : 1, exhausted ? 100 : -1);
      exhausted = false;
      if (n <= 0) continue;
      if (fds[0].revents != 0) {
        eventfd_t count;
        (void)!eventfd_read(accept_event_.get(), &count);
      }
      if (accepting && fds[1].revents != 0) exhausted = !AcceptOne();
    }
    if (listener_open) CloseListenerHere();
    while (true) {
      Reap();
      {
        MutexLock lock(mutex_);
        if (connections_.empty()) return;
        if (!finished_.empty()) continue;
      }
      pollfd wait{accept_event_.get(), POLLIN, 0};
      poll(&wait, 1, -1);
      eventfd_t count;
      (void)!eventfd_read(accept_event_.get(), &count);
    }
  }

  void CloseListenerHere() {
    MutexLock lock(mutex_);
    listener_.Close();
    listener_closed_ = true;
    listener_gone_.NotifyAll();
  }

  void Reap() {
    std::list<Connection> done;
    {
      MutexLock lock(mutex_);
      for (const auto& it : finished_) done.splice(done.end(), connections_, it);
      finished_.clear();
    }
    for (Connection& connection : done) pthread_join(connection.thread, nullptr);
  }

  // False when descriptors or threads ran out: the caller pauses.
  bool AcceptOne() {
    sockaddr_storage address{};
    socklen_t size = sizeof address;
    UniqueFd fd(accept4(listener_.fd(), reinterpret_cast<sockaddr*>(&address), &size, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) {
      if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM) return true;
      if (!warned_.exchange(true))
        LogWarn("out of file descriptors: new connections wait", {{"errno", strerror(errno)}});
      return false;
    }
    std::list<Connection> fresh(1);
    Connection& connection = fresh.front();
    connection.server = this;
    connection.number = ++accepted_;
    if (listener_.is_unix()) {
      ucred peer{};
      socklen_t length = sizeof peer;
      if (getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0) connection.peer_uid = peer.uid;
      connection.peer = "unix";
    } else {
      connection.peer = PeerName(address);
      const int on = 1;
      const int idle = 30, interval = 10, count = 3;  // a half-open peer is noticed after a minute
      setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      setsockopt(fd.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
      setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
      setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
      setsockopt(fd.get(), IPPROTO_TCP, TCP_KEEPCNT, &count, sizeof count);
    }
    connection.fd = std::move(fd);

    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, std::max<size_t>(config_.thread_stack_bytes, 64u << 10) * kStackFactor);
    MutexLock lock(mutex_);
    connections_.splice(connections_.begin(), fresh);
    connection.self = connections_.begin();
    const int rc = pthread_create(&connection.thread, &attributes, &Impl::ConnectionMain, &connection);
    pthread_attr_destroy(&attributes);
    if (rc == 0) return true;
    connections_.pop_front();
    if (!warned_.exchange(true)) LogWarn("out of threads: a connection was closed", {{"errno", strerror(rc)}});
    return false;
  }

  void Run(Connection& connection) {
    Channel channel(std::move(connection.fd));
    std::shared_ptr<ssl_ctx_st> tls;
    {
      MutexLock lock(mutex_);
      tls = tls_context_;
    }
    if (tls != nullptr) {
      const Status status = channel.Accept(tls.get(), Patience::For(config_.tls_handshake_timeout, stop_event_.get()));
      if (!status.ok()) {
        LogDebug("TLS handshake failed", {{"peer", connection.peer}, {"error", status.ToString()}});
        channel.Linger(stop_event_.get());  // so that the alert arrives
        return;
      }
    }
    WireReader reader(channel);
    ServedConnection served{&channel, &reader, connection.peer, connection.peer_uid, connection.number, 0};
    Instant patient_until = std::chrono::steady_clock::now() + config_.first_request_patience;
    while (AwaitRequest(channel, reader, patient_until)) {
      patient_until = Instant();
      const HttpFramer::Next next = framer_.Serve(served);
      if (next == HttpFramer::Next::kReset) return channel.Reset();
      if (next == HttpFramer::Next::kClose) break;
      reader.Shrink();
    }
    channel.ShutdownWrite();
  }

  // True when a request has begun to arrive. While draining, one that is here by `patient_until` is still served.
  bool AwaitRequest(Channel& channel, const WireReader& reader, Instant patient_until) {
    if (stopping_.load()) return false;
    if (reader.HasBuffered() || channel.HasPending()) return true;
    const Status status = WaitFor(channel.fd(), POLLIN, Patience::For(config_.idle_timeout, drain_event_.get()));
    if (stopping_.load()) return false;
    if (status.code() == Code::kCancelled) {
      return WaitFor(channel.fd(), POLLIN, {patient_until, {}, stop_event_.get()}).ok();
    }
    return status.ok();
  }

  const HttpServerConfig config_;
  const UniqueFd stop_event_;
  const UniqueFd drain_event_;
  const UniqueFd accept_event_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> closing_listener_{false};
  std::atomic<bool> warned_{false};
  HttpFramer framer_;
  Listener listener_;      // the acceptor's once it runs
  uint64_t accepted_ = 0;  // the acceptor's
  pthread_t acceptor_{};
  bool acceptor_started_ = false;

  mutable Mutex mutex_;
  CondVar listener_gone_;
  std::shared_ptr<ssl_ctx_st> tls_context_ LK_GUARDED_BY(mutex_);
  bool listening_ LK_GUARDED_BY(mutex_) = false;
  bool listener_closed_ LK_GUARDED_BY(mutex_) = false;
  bool stop_running_ LK_GUARDED_BY(mutex_) = false;
  bool stopped_ LK_GUARDED_BY(mutex_) = false;
  std::list<Connection> connections_ LK_GUARDED_BY(mutex_);
  std::list<std::list<Connection>::iterator> finished_ LK_GUARDED_BY(mutex_);
};

HttpServer::HttpServer(HttpServerConfig config, Handler handler)
    : impl_(std::make_unique<Impl>(std::move(config), std::move(handler))) {}

HttpServer::~HttpServer() = default;

Status HttpServer::Listen() { return impl_->Listen(); }
Status HttpServer::Start() { return impl_->Start(); }
int HttpServer::port() const { return impl_->port(); }
Status HttpServer::SetTls(const TlsServerConfig& tls) { return impl_->SetTls(tls); }
void HttpServer::CloseListener() { impl_->CloseListener(); }
void HttpServer::DrainConnections() { impl_->DrainConnections(); }
void HttpServer::Stop() { impl_->Stop(); }
size_t HttpServer::open_connections() const { return impl_->open_connections(); }

}  // namespace lockkeeper
