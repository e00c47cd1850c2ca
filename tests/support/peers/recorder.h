// Recorder: a TLS-terminating HTTP proxy in front of an API server that keeps what went through it.
//
// Purpose:   which requests kubectl makes and what it is answered, head, body and stream. Adds the credentials, so that
//            its clients need none; asks for no compression.
// Ownership: borrows the Endpoint; owns its threads and folder. The destructor ends every connection.
// Threads:   a thread a connection; Exchanges is thread-safe.
// Failure:   Start answers a Status; a connection whose server cannot be reached is closed and says so in `error`.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/support/peers/endpoint.h"

namespace lockkeeper::peers {

struct Exchange {
  std::string method, target;
  std::string accept, content_type, body;           // of the request
  int status = 0;                                   // 0: none yet
  std::string answer_type;                          // Content-Type of the answer
  std::multimap<std::string, std::string> headers;  // of the answer, names lower-cased
  std::string answer;                               // what came so far
  bool streamed = false;                            // in chunks
  bool ended = false;
  std::string error;
};

class Recorder {
 public:
  // `kubeconfig_folder`: where a kubeconfig that leads through it is written. `name_space`: its context's.
  static Result<std::unique_ptr<Recorder>> Start(const Endpoint& upstream, const std::string& kubeconfig_folder,
                                                 const std::string& name_space);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  const std::string& kubeconfig() const { return kubeconfig_; }
  // As they are now, in the order in which the requests came.
  std::vector<Exchange> Exchanges() const;

 private:
  class Impl;
  Recorder() = default;
  std::string kubeconfig_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockkeeper::peers
