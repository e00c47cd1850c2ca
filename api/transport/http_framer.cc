#include "api/transport/http_framer.h"

#include <httplib.h>

#include <algorithm>
#include <string_view>

#include "api/base/log.h"

namespace lockkeeper {

namespace {

constexpr size_t kMaxHead = 64u << 10;
constexpr size_t kWriteBuffer = 32u << 10;

// What httplib reads and writes: the request line from memory, the answer through a small buffer, so that
// headers and body leave in one packet.
class FramerStream : public httplib::Stream {
 public:
  FramerStream(Channel& channel, const HttpFramer::Limits& limits)
      : channel_(channel),
        stopping_(*limits.stopping),
        patience_{Instant::max(), limits.write_timeout, limits.stop_fd} {}

  void Feed(std::string text) { input_ = std::move(text); }
  void Break() { broken_ = true; }
  bool broken() const { return broken_; }

  bool Flush() {
    if (!broken_ && !output_.empty() && !Send(output_)) broken_ = true;
    output_.clear();
    return !broken_;
  }
  bool Alive() {
    if (!broken_ && (stopping_.load() || channel_.PeerClosed())) broken_ = true;
    return !broken_;
  }

  bool is_readable() const override { return position_ < input_.size(); }
  bool is_writable() const override { return !broken_; }
  ssize_t read(char* data, size_t size) override {
    const size_t n = std::min(size, input_.size() - position_);
    memcpy(data, input_.data() + position_, n);
    position_ += n;
    return static_cast<ssize_t>(n);
  }
  ssize_t write(const char* data, size_t size) override {
    if (broken_) return -1;
    if (output_.size() + size <= kWriteBuffer) {
      output_.append(data, size);
      return static_cast<ssize_t>(size);
    }
    if (!Flush() || !Send({data, size})) {
      broken_ = true;
      return -1;
    }
    return static_cast<ssize_t>(size);
  }
  void get_remote_ip_and_port(std::string& ip, int& port) const override { Nowhere(ip, port); }
  void get_local_ip_and_port(std::string& ip, int& port) const override { Nowhere(ip, port); }
  // httplib answers 500 for descriptors that select() cannot hold; it never waits on this one.
  socket_t socket() const override { return 0; }

 private:
  static void Nowhere(std::string& ip, int& port) {
    ip.clear();
    port = 0;
  }
  bool Send(std::string_view data) { return !stopping_.load() && channel_.Write(data, patience_).ok(); }

  Channel& channel_;
  const std::atomic<bool>& stopping_;
  const Patience patience_;
  std::string input_;
  size_t position_ = 0;
  std::string output_;
  bool broken_ = false;
};

class SinkWriter : public ChunkWriter {
 public:
  SinkWriter(FramerStream& stream, httplib::DataSink& sink) : stream_(stream), sink_(sink) {}
  bool Write(std::string_view chunk) override {
    if (chunk.empty()) return stream_.Flush();
    return sink_.write(chunk.data(), chunk.size()) && stream_.Flush();
  }
  bool Alive() override { return stream_.Flush() && stream_.Alive(); }

 private:
  FramerStream& stream_;
  httplib::DataSink& sink_;
};

// One request under way; httplib's callbacks run on the connection's thread and find it here.
struct Exchange {
  ServedConnection* connection;
  WireHead head;
  FramerStream* stream;
  bool handled = false;  // false: httplib refused the request line by itself
  bool close = false;
  bool reset = false;
  bool unread = false;  // the client is still sending a body that nobody wants
};
thread_local Exchange* current_exchange = nullptr;

std::string_view ReasonPhrase(int status) {
  switch (status) {
    case 408: return "Request Timeout";
    case 431: return "Request Header Fields Too Large";
    default: return "Bad Request";
  }
}

Status SendPlainError(Channel& channel, int status, std::string_view text, const Patience& patience) {
  std::string out = "HTTP/1.1 " + std::to_string(status) + " ";
  out.append(ReasonPhrase(status)).append("\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: ");
  out.append(std::to_string(text.size() + 1)).append("\r\n\r\n").append(text).append("\n");
  return channel.Write(out, patience);
}

}  // namespace

class HttpFramer::Library : public httplib::Server {
 public:
  Library(Limits limits, HttpServer::Handler handler) : limits_(limits), handler_(std::move(handler)) {
    svr_sock_ = 0;  // anything but invalid: an invalid one means "shutting down" to streamed answers
    set_pre_routing_handler([this](const httplib::Request& request, httplib::Response& response) {
      Exchange& exchange = *current_exchange;
      exchange.handled = true;
      try {
        Handle(exchange, request, response);
      } catch (const std::exception& error) {
        LogError("request handler threw", {{"target", request.target}, {"what", error.what()}});
        response = httplib::Response();
        Abort(exchange, response);
      }
      return HandlerResponse::Handled;
    });
    set_post_routing_handler([](const httplib::Request&, httplib::Response& response) {
      const Exchange& exchange = *current_exchange;
      response.headers.erase("Keep-Alive");
      response.headers.erase("Accept-Ranges");
      if (response.status == 204 || response.status == 304) response.headers.erase("Content-Length");
      if (exchange.close || !exchange.handled) response.headers.emplace("Connection", "close");
    });
  }

  Next Serve(ServedConnection& connection) {
    const Patience patience = ReadPatience();
    bool any = false;
    auto head = connection.reader->ReadHead(kMaxHead, patience, &any);
    if (!head.ok()) {
      if (!any) return Next::kClose;
      if (head.code() == Code::kExhausted) return Refuse(connection, 431, head.status().message());
      if (head.code() == Code::kInvalid) return Refuse(connection, 400, head.status().message());
      if (head.code() == Code::kTimeout) return Refuse(connection, 408, "the request did not arrive in time");
      return Next::kClose;
    }
    FramerStream stream(*connection.channel, limits_);
    Exchange exchange{&connection, std::move(*head), &stream};
    exchange.close = exchange.head.HasToken("connection", "close") || exchange.head.start_line.ends_with("HTTP/1.0");
    stream.Feed(exchange.head.start_line + "\r\n\r\n");
    current_exchange = &exchange;
    bool library_closes = false;
    const bool served = process_request(stream, false, library_closes, nullptr);
    current_exchange = nullptr;
    if (exchange.reset) return Next::kReset;
    if (!stream.Flush() || !served || !exchange.handled || exchange.close) {
      if (exchange.unread && !stream.broken()) connection.channel->Linger(limits_.stop_fd);
      return Next::kClose;
    }
    return Next::kKeepAlive;
  }

 private:
  Patience ReadPatience() const { return Patience::For(limits_.read_timeout, limits_.stop_fd); }

  Next Refuse(ServedConnection& connection, int status, std::string_view why) {
    if (SendPlainError(*connection.channel, status, why, Patience::For(limits_.write_timeout, limits_.stop_fd)).ok()) {
      connection.channel->Linger(limits_.stop_fd);
    }
    return Next::kClose;
  }

  // False when the request was refused; the answer is in `response`.
  bool ReadBody(Exchange& exchange, HttpRequest& request, httplib::Response& response) {
    const auto refuse = [&](int status, const std::string& why) {
      response.status = status;
      response.set_content(why + "\n", "text/plain");
      exchange.close = true;
      exchange.unread = true;
      return false;
    };
    const auto framing = FramingOf(exchange.head, false);
    if (!framing.ok()) return refuse(400, framing.status().message());
    const std::string too_long = "a body of more than " + std::to_string(limits_.max_body_bytes) + " bytes";
    if (framing->kind == Framing::Kind::kNone) return true;
    if (framing->length > limits_.max_body_bytes) return refuse(413, too_long);
    if (exchange.head.HasToken("expect", "100-continue") && !exchange.connection->reader->HasBuffered()) {
      if (!exchange.connection->channel->Write("HTTP/1.1 100 Continue\r\n\r\n", ReadPatience()).ok()) {
        exchange.stream->Break();
        return false;
      }
    }
    if (framing->kind == Framing::Kind::kLength) request.body.reserve(framing->length);
    const auto whole = exchange.connection->reader->ReadBody(
        *framing, {Instant::max(), limits_.read_timeout, limits_.stop_fd}, [&](std::string_view piece) {
          if (request.body.size() + piece.size() > limits_.max_body_bytes) return false;
          request.body += piece;
          return true;
        });
    if (whole.ok() && *whole) return true;
    if (whole.ok()) return refuse(413, too_long);
    if (whole.code() == Code::kInvalid) return refuse(400, whole.status().message());
    if (whole.code() == Code::kTimeout) return refuse(408, "the body did not arrive in time");
    exchange.stream->Break();
    return false;
  }

  static void Abort(Exchange& exchange, httplib::Response& out) {
    exchange.reset = true;
    exchange.stream->Break();
    out.status = 500;
  }

  void Handle(Exchange& exchange, const httplib::Request& in, httplib::Response& out) {
    ServedConnection& connection = *exchange.connection;
    HttpRequest request;
    if (!ReadBody(exchange, request, out)) {
      if (out.status == -1) out.status = 400;
      return;
    }
    request.method = in.method;
    request.target = in.target;
    request.path = in.path;
    request.query = in.params;
    request.headers = std::move(exchange.head.headers);
    request.connection = connection.number;
    request.sequence = ++connection.requests;
    request.peer = connection.peer;
    request.peer_uid = connection.peer_uid;
    auto answer = std::make_shared<HttpResponse>();
    handler_(request, *answer);

    if (answer->abort) return Abort(exchange, out);
    if (answer->close || limits_.draining->load()) exchange.close = true;
    out.status = answer->status;
    for (const auto& [name, value] : answer->headers) out.headers.emplace(name, value);
    if (!answer->stream) {
      if (!answer->body.empty()) {
        out.body = std::move(answer->body);
        out.set_header("Content-Type", answer->content_type);
      }
      return;
    }
    FramerStream* const stream = exchange.stream;
    Exchange* const current = &exchange;
    out.set_chunked_content_provider(answer->content_type, [answer, stream, current](size_t, httplib::DataSink& sink) {
      SinkWriter writer(*stream, sink);
      const bool whole = stream->Flush() && answer->stream(writer) && !stream->broken();
      if (!whole) {
        current->close = true;
        stream->Break();
        return false;
      }
      sink.done();
      return true;
    });
  }

  const Limits limits_;
  const HttpServer::Handler handler_;
};

HttpFramer::HttpFramer(Limits limits, HttpServer::Handler handler)
    : library_(std::make_unique<Library>(limits, std::move(handler))) {}

HttpFramer::~HttpFramer() = default;

HttpFramer::Next HttpFramer::Serve(ServedConnection& connection) { return library_->Serve(connection); }

}  // namespace lockkeeper
