// HttpFramer: one request parsed and one answer framed by cpp-httplib, on a connection of ours.
//
// Purpose:   the only translation unit that sees httplib. It parses the request line and query and frames the
//            answer; heads are limited and read by WireReader, since httplib would also decode header values,
//            run a regular expression over Range and compress a watch.
// Ownership: a framer serves any number of connections; channel and reader are borrowed for a call.
// Threads:   Serve runs on many threads at once.
// Failure:   what cannot be parsed is answered 400 and the connection closed; an exception ends it.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "api/transport/channel.h"
#include "api/transport/http_server.h"
#include "api/transport/http_wire.h"

namespace lockkeeper {

// What one connection has beside its bytes.
struct ServedConnection {
  Channel* channel = nullptr;
  WireReader* reader = nullptr;
  std::string peer;
  uid_t peer_uid = static_cast<uid_t>(-1);
  uint64_t number = 0;
  uint64_t requests = 0;
};

class HttpFramer {
 public:
  struct Limits {
    std::chrono::milliseconds read_timeout;
    std::chrono::milliseconds write_timeout;
    size_t max_body_bytes;
    int stop_fd;                        // readable: everything ends
    const std::atomic<bool>* stopping;  // true with it
    const std::atomic<bool>* draining;  // each answer closes its connection
  };
  enum class Next { kKeepAlive, kClose, kReset };

  HttpFramer(Limits limits, HttpServer::Handler handler);
  ~HttpFramer();

  // Reads one request (whose first byte may be awaited up to read_timeout), answers it.
  Next Serve(ServedConnection& connection);

 private:
  class Library;
  std::unique_ptr<Library> library_;
};

}  // namespace lockkeeper
