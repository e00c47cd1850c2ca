#include "tests/integration/front/line_server.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <array>
#include <utility>

namespace lockkeeper::front {

LineServer::LineServer(std::string name) : name_(std::move(name)), listener_(0, 4096), thread_([this] { Run(); }) {}

LineServer::~LineServer() { Stop(); }

void LineServer::Stop() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

void LineServer::Run() {
  const UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = listener_.fd();
  ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, listener_.fd(), &event);
  std::map<int, std::string> lines;
  std::array<epoll_event, 64> events;
  while (!stop_) {
    const int n = ::epoll_wait(epoll.get(), events.data(), static_cast<int>(events.size()), 20);
    for (int i = 0; i < n; ++i) {
      int fd = events[i].data.fd;
      if (fd != listener_.fd()) {
        if (Serve(fd, &lines[fd])) continue;
        lines.erase(fd);
        // A process that is being forked elsewhere in the test may hold a copy, and the close would not take it out.
        ::epoll_ctl(epoll.get(), EPOLL_CTL_DEL, fd, nullptr);
        ::close(fd);
        continue;
      }
      fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) continue;
      ++connections_;
      event.data.fd = fd;
      ::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event);
    }
  }
  for (const auto& [fd, line] : lines) ::close(fd);
}

bool LineServer::Serve(int fd, std::string* line) {
  char buffer[4096];
  const ssize_t n = ::recv(fd, buffer, sizeof buffer, 0);
  if (n <= 0) return n < 0 && errno == EAGAIN;
  line->append(buffer, static_cast<size_t>(n));
  size_t end = 0;
  while ((end = line->find('\n')) != std::string::npos) {
    const std::string id = line->substr(0, end);
    line->erase(0, end + 1);
    seen_.push_back(id);
    const std::string answer = name_ + " " + id + "\n";
    if (::send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) != static_cast<ssize_t>(answer.size())) return false;
  }
  return true;
}

}  // namespace lockkeeper::front
