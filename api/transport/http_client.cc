#include "api/transport/http_client.h"

#include <sys/eventfd.h>

#include <algorithm>
#include <charconv>

#include "api/base/sync.h"
#include "api/base/unique_fd.h"
#include "api/transport/channel.h"
#include "api/transport/dialer.h"
#include "api/transport/http_wire.h"
#include "api/transport/tls.h"
#include "api/transport/url.h"

namespace lockkeeper {

namespace {

constexpr size_t kMaxHead = 256u << 10;
// Against a peer that never ends; the largest list that a store of ours holds is far below.
constexpr size_t kMaxBody = size_t{1} << 30;

struct Connection {
  explicit Connection(UniqueFd fd) : channel(std::move(fd)), reader(channel) {}
  Channel channel;
  WireReader reader;
  Instant idle_since{};
  bool reused = false;
};
using ConnectionPtr = std::unique_ptr<Connection>;

Result<int> StatusOf(const std::string& start_line) {
  int status = 0;
  if (start_line.size() < 12 || start_line.compare(0, 7, "HTTP/1.") != 0 || start_line[8] != ' ') {
    return Status(Code::kInternal, "the answer is not HTTP/1.1: \"" + start_line.substr(0, 40) + "\"");
  }
  const auto [end, error] = std::from_chars(start_line.data() + 9, start_line.data() + 12, status);
  if (error != std::errc() || end != start_line.data() + 12 || status < 100) {
    return Status(Code::kInternal, "the answer has no status: \"" + start_line.substr(0, 40) + "\"");
  }
  return status;
}

// A malformed answer is a defect of the peer, not of the caller's input.
Status AsAnswerError(const Status& status) {
  if (status.code() != Code::kInvalid) return status;
  return {Code::kInternal, status.message()};
}

bool IsSafeText(std::string_view text, bool allow_space) {
  return std::none_of(text.begin(), text.end(), [allow_space](char c) {
    return c == '\r' || c == '\n' || c == '\0' || (!allow_space && c == ' ');
  });
}

}  // namespace

CancelToken::CancelToken() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) { LK_CHECK(fd_ >= 0); }

CancelToken::~CancelToken() { close(fd_); }

void CancelToken::Cancel() {
  cancelled_.store(true);
  (void)!eventfd_write(fd_, 1);
}

std::string ClientResponse::Header(std::string_view lower_case_name) const {
  const auto it = headers.find(std::string(lower_case_name));
  return it == headers.end() ? std::string() : it->second;
}

class HttpClient::Impl {
 public:
  explicit Impl(const HttpClientConfig& config) : config_(config), url_(ParseBaseUrl(config.base_url)) {
    if (url_.ok() && url_->tls) tls_ = NewClientContext(config.tls);
  }

  // `on_data` null: the whole body into the response.
  Status Call(const ClientRequest& request, const CancelToken* cancel, ClientResponse& response,
              std::chrono::milliseconds idle_timeout, const std::function<bool(std::string_view)>& on_data) {
    if (!url_.ok()) return url_.status();
    if (cancel != nullptr && cancel->cancelled()) return {Code::kCancelled, "cancelled by the caller"};
    LK_ASSIGN_OR_RETURN(const std::string head, Head(request));
    Patience patience = Patience::For(request.timeout, cancel != nullptr ? cancel->fd() : -1);
    const bool streaming = on_data != nullptr;
    bool allow_reuse = !streaming;
    while (true) {
      ConnectionPtr connection;
      if (allow_reuse) connection = TakeIdle();
      if (connection == nullptr) {
        LK_ASSIGN_OR_RETURN(connection, Fresh(patience));
      }
      response.reused_connection = connection->reused;
      bool any_byte = false;
      auto answer = Send(*connection, head, request.body, patience, &any_byte);
      if (!answer.ok()) {
        const bool stale = connection->reused && !any_byte && answer.code() == Code::kUnavailable;
        if (stale && request.retry_on_stale && !response.retried) {
          response.retried = true;
          allow_reuse = false;
          continue;
        }
        return AsAnswerError(answer.status());
      }
      return Receive(std::move(connection), request, *answer, patience, idle_timeout, on_data, response);
    }
  }

  void CloseIdle() {
    std::vector<ConnectionPtr> closing;
    MutexLock lock(mutex_);
    closing.swap(idle_);
  }

  std::string Where() const { return url_.ok() ? url_->Where() : config_.base_url; }

 private:
  Result<std::string> Head(const ClientRequest& request) const {
    if (!IsSafeText(request.method, false) || !IsSafeText(request.target, false) || request.target.empty() ||
        request.target[0] != '/') {
      return Status(Code::kInvalid,
                    "request target \"" + request.target + "\" must be a percent-encoded absolute path");
    }
    std::string head = request.method + " " + url_->prefix + request.target + " HTTP/1.1\r\n";
    const auto add = [&head](std::string_view name, std::string_view value) {
      head.append(name).append(": ").append(value).append("\r\n");
    };
    add("Host", url_->HostHeader());
    add("User-Agent", config_.user_agent);
    for (const auto& [name, value] : request.headers) {
      if (!IsSafeText(name, false) || !IsSafeText(value, true)) {
        return Status(Code::kInvalid, "header \"" + name + "\" holds a control character");
      }
      add(name, value);
    }
    if (!request.body.empty() || (request.method != "GET" && request.method != "HEAD")) {
      add("Content-Length", std::to_string(request.body.size()));
    }
    return head += "\r\n";
  }

  ConnectionPtr TakeIdle() {
    const Instant now = std::chrono::steady_clock::now();
    std::vector<ConnectionPtr> dropped;  // closed outside the lock
    MutexLock lock(mutex_);
    while (!idle_.empty()) {
      ConnectionPtr connection = std::move(idle_.back());
      idle_.pop_back();
      if (now - connection->idle_since <= config_.max_idle_age && connection->channel.QuietAndOpen()) {
        connection->reused = true;
        return connection;
      }
      dropped.push_back(std::move(connection));
    }
    return nullptr;
  }

  void PutIdle(ConnectionPtr connection) {
    connection->idle_since = std::chrono::steady_clock::now();
    connection->reader.Shrink();
    ConnectionPtr oldest;
    MutexLock lock(mutex_);
    idle_.push_back(std::move(connection));
    if (idle_.size() > config_.max_idle) {
      oldest = std::move(idle_.front());
      idle_.erase(idle_.begin());
    }
  }

  Result<ConnectionPtr> Fresh(const Patience& call) {
    Patience patience = Patience::For(config_.connect_timeout, call.wake);
    patience.deadline = std::min(patience.deadline, call.deadline);
    if (url_->tls && !tls_.ok()) return tls_.status();
    LK_ASSIGN_OR_RETURN(UniqueFd fd, Dial(*url_, patience));
    auto connection = std::make_unique<Connection>(std::move(fd));
    if (url_->tls) {
      const std::string& name = config_.tls.server_name.empty() ? url_->host : config_.tls.server_name;
      const Status status = connection->channel.Connect(tls_->get(), name, patience);
      if (!status.ok()) return status.Annotate("connecting to " + url_->Where());
    }
    return connection;
  }

  Result<WireHead> Send(Connection& connection, const std::string& head, const std::string& body,
                        const Patience& patience, bool* any_byte) {
    // One packet for small bodies; no copy of large ones.
    Status written;
    if (body.size() <= 16u << 10) {
      written = connection.channel.Write(head + body, patience);
    } else {
      written = connection.channel.Write(head, patience);
      if (written.ok()) written = connection.channel.Write(body, patience);
    }
    // A server that refuses a body may answer and close before it has read all: look for the answer.
    if (!written.ok() && written.code() != Code::kUnavailable) return written;
    while (true) {
      bool any = false;
      auto answer = connection.reader.ReadHead(kMaxHead, patience, &any);
      *any_byte = *any_byte || any;
      if (!answer.ok()) return !written.ok() && answer.code() == Code::kUnavailable ? written : answer.status();
      LK_ASSIGN_OR_RETURN(const int status, StatusOf(answer->start_line));
      if (status == 101) return Status(Code::kInternal, "the server switched protocols without being asked");
      if (status >= 200) return answer;
    }
  }

  Status Receive(ConnectionPtr connection, const ClientRequest& request, WireHead& head, Patience patience,
                 std::chrono::milliseconds idle_timeout, const std::function<bool(std::string_view)>& on_data,
                 ClientResponse& response) {
    LK_ASSIGN_OR_RETURN(response.status, StatusOf(head.start_line));
    Framing framing;
    if (request.method != "HEAD" && response.status != 204 && response.status != 304) {
      auto found = FramingOf(head, true);
      if (!found.ok()) return AsAnswerError(found.status());
      framing = *found;
    }
    bool keep = framing.kind != Framing::Kind::kUntilClose && !head.HasToken("connection", "close") &&
                head.start_line.compare(0, 8, "HTTP/1.1") == 0;
    response.headers = std::move(head.headers);
    if (on_data != nullptr && response.status / 100 == 2) {
      keep = false;
      patience.deadline = Instant::max();
      patience.idle = idle_timeout;
      const auto whole = connection->reader.ReadBody(framing, patience, on_data);
      return whole.ok() ? Status() : AsAnswerError(whole.status());
    }
    if (framing.kind == Framing::Kind::kLength) response.body.reserve(std::min<uint64_t>(framing.length, kMaxBody));
    const auto whole = connection->reader.ReadBody(framing, patience, [&response](std::string_view piece) {
      if (response.body.size() + piece.size() > kMaxBody) return false;
      response.body += piece;
      return true;
    });
    if (!whole.ok()) return AsAnswerError(whole.status());
    if (!*whole) return {Code::kExhausted, "an answer of more than " + std::to_string(kMaxBody) + " bytes"};
    if (keep && on_data == nullptr && config_.max_idle > 0 && !connection->reader.HasBuffered()) {
      PutIdle(std::move(connection));
    }
    return {};
  }

  const HttpClientConfig& config_;
  const Result<BaseUrl> url_;
  Result<TlsContext> tls_{Status(Code::kInternal, "no TLS")};
  Mutex mutex_;
  std::vector<ConnectionPtr> idle_ LK_GUARDED_BY(mutex_);  // oldest first
};

HttpClient::HttpClient(HttpClientConfig config) : config_(std::move(config)), impl_(std::make_unique<Impl>(config_)) {}

HttpClient::~HttpClient() = default;

Result<ClientResponse> HttpClient::Do(const ClientRequest& request, const CancelToken* cancel) {
  ClientResponse response;
  const Status status = impl_->Call(request, cancel, response, std::chrono::milliseconds(0), nullptr);
  if (!status.ok()) return status.Annotate(request.method + " " + impl_->Where() + request.target);
  return response;
}

HttpClient::StreamEnd HttpClient::Stream(const ClientRequest& request, std::chrono::milliseconds idle_timeout,
                                         const std::function<bool(std::string_view)>& on_data,
                                         const CancelToken* cancel) {
  StreamEnd end;
  end.status = impl_->Call(request, cancel, end.response, idle_timeout, on_data);
  if (!end.status.ok()) end.status = end.status.Annotate(request.method + " " + impl_->Where() + request.target);
  return end;
}

void HttpClient::CloseIdle() { impl_->CloseIdle(); }

}  // namespace lockkeeper
