#include "api/transport/listener.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "api/base/file.h"

namespace lockkeeper {

namespace {

Status BindError(const std::string& where, int error) {
  if (error == EADDRINUSE) return {Code::kBusy, "listen on " + where + ": address already in use"};
  if (error == EADDRNOTAVAIL) return {Code::kInvalid, "listen on " + where + ": this host has no such address"};
  return ErrnoStatus("listen on", where, error);
}

}  // namespace

Status Listener::ListenTcp(const std::string& address, int port) {
  const std::string where = address + ":" + std::to_string(port);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int rc = getaddrinfo(address.empty() ? nullptr : address.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (rc != 0) return {Code::kInvalid, "listen on " + where + ": " + gai_strerror(rc)};
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found, freeaddrinfo);
  UniqueFd fd(socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return BindError(where, errno);
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd.get(), found->ai_addr, found->ai_addrlen) != 0 || listen(fd.get(), SOMAXCONN) != 0) {
    return BindError(where, errno);
  }
  sockaddr_storage bound{};
  socklen_t size = sizeof bound;
  if (getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) return BindError(where, errno);
  port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  fd_ = std::move(fd);
  return {};
}

Status Listener::ListenUnix(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return {Code::kInvalid, "listen on " + path + ": a Unix socket's path has at most " +
                                std::to_string(sizeof address.sun_path - 1) + " bytes, this one " +
                                std::to_string(path.size())};
  }
  memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return BindError(path, errno);
  struct stat info {};
  if (lstat(path.c_str(), &info) == 0) {
    if (!S_ISSOCK(info.st_mode))
      return {Code::kAlreadyExists, "listen on " + path + ": there is a file that is no socket"};
    const UniqueFd probe(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(probe.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0 || errno == EAGAIN) {
      return BindError(path, EADDRINUSE);
    }
    LK_RETURN_IF_ERROR(RemoveFile(path));
  }
  // Nobody can connect before listen(), so the mode is in place in time.
  if (bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || chmod(path.c_str(), 0600) != 0 ||
      listen(fd.get(), SOMAXCONN) != 0) {
    return BindError(path, errno);
  }
  if (lstat(path.c_str(), &info) == 0) {
    device_ = info.st_dev;
    inode_ = info.st_ino;
  }
  path_ = path;
  fd_ = std::move(fd);
  return {};
}

void Listener::Close() {
  if (!fd_) return;
  fd_.Reset();
  struct stat info {};
  // A successor may have put its own socket there.
  if (!path_.empty() && lstat(path_.c_str(), &info) == 0 && info.st_dev == device_ && info.st_ino == inode_) {
    unlink(path_.c_str());
  }
}

}  // namespace lockkeeper
