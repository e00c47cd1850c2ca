// Listener: a listening TCP or Unix socket.
//
// Purpose:   bind with an error that names the address; Unix sockets of mode 0600, with a stale file replaced
//            and our own file removed at the end.
// Ownership: owns the descriptor and the socket file it made.
// Threads:   Close may be called by any thread; the rest by one.
// Failure:   kBusy (address in use), kForbidden, kInvalid (no such address), each naming the address.
#pragma once

#include <sys/types.h>

#include <string>

#include "api/base/status.h"
#include "api/base/unique_fd.h"

namespace lockkeeper {

class Listener {
 public:
  Listener() = default;
  ~Listener() { Close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  Status ListenTcp(const std::string& address, int port);
  Status ListenUnix(const std::string& path);
  void Close();

  int fd() const { return fd_.get(); }
  int port() const { return port_; }
  bool is_unix() const { return !path_.empty(); }

 private:
  UniqueFd fd_;
  int port_ = 0;
  std::string path_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace lockkeeper
