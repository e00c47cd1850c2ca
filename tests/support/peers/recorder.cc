#include "tests/support/peers/recorder.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <deque>
#include <thread>

#include "api/base/file.h"
#include "api/base/sync.h"
#include "api/transport/dialer.h"
#include "api/transport/http_wire.h"
#include "api/transport/listener.h"
#include "api/transport/tls.h"
#include "api/transport/url.h"
#include "tests/integration/transport/test_pki.h"
#include "tests/support/peers/places.h"

namespace lockkeeper::peers {
namespace {

constexpr size_t kMaxHead = 256u << 10;
constexpr auto kPatience = std::chrono::seconds(60);

std::string HeadText(const std::string& start_line, const HeaderMap& headers) {
  std::string text = start_line + "\r\n";
  for (const auto& [name, value] : headers) text += name + ": " + value + "\r\n";
  return text + "\r\n";
}

}  // namespace

class Recorder::Impl {
 public:
  explicit Impl(const Endpoint& upstream) : upstream_(upstream) {}

  Status Start() {
    LK_ASSIGN_OR_RETURN(url_, ParseBaseUrl(upstream_.client().config().base_url));
    LK_ASSIGN_OR_RETURN(client_tls_, NewClientContext(upstream_.client().config().tls));
    const testing::KeyPair pair = pki_.Issue({.common_name = "recorder", .ip_addresses = {"127.0.0.1"}});
    LK_ASSIGN_OR_RETURN(server_tls_, NewServerContext({pair.certificate_pem, pair.private_key_pem, ""}));
    LK_RETURN_IF_ERROR(listener_.ListenTcp("127.0.0.1", 0));
    acceptor_ = std::thread([this] { Accept(); });
    return Status::Ok();
  }

  ~Impl() {
    stop_.Cancel();
    if (acceptor_.joinable()) acceptor_.join();
    std::vector<std::thread> threads;
    {
      MutexLock lock(mutex_);
      for (const int fd : open_) ::shutdown(fd, SHUT_RDWR);
      threads.swap(threads_);
    }
    for (std::thread& thread : threads) thread.join();
  }

  std::string Url() const { return "https://127.0.0.1:" + std::to_string(listener_.port()); }
  const std::string& ca_pem() const { return pki_.ca_pem(); }

  std::vector<Exchange> Exchanges() const {
    MutexLock lock(mutex_);
    return {exchanges_.begin(), exchanges_.end()};
  }

 private:
  void Accept() {
    for (;;) {
      pollfd fds[2] = {{listener_.fd(), POLLIN, 0}, {stop_.fd(), POLLIN, 0}};
      ::poll(fds, 2, -1);
      if (fds[1].revents != 0) return;
      const int fd = ::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
      if (fd < 0) continue;
      MutexLock lock(mutex_);
      threads_.emplace_back([this, fd] { Serve(UniqueFd(fd)); });
    }
  }

  void Serve(UniqueFd fd) {
    const int number = fd.get();
    {
      MutexLock lock(mutex_);
      open_.push_back(number);
    }
    {
      Channel client(std::move(fd));
      WireReader reader(client);
      const Patience patience = Patience::For(std::chrono::hours(1), stop_.fd());
      if (client.Accept(server_tls_.get(), patience).ok()) {
        while (One(client, reader, patience)) {
        }
        client.ShutdownWrite();
      }
      MutexLock lock(mutex_);
      std::erase(open_, number);
    }
  }

  // One request and its answer; false ends the connection.
  bool One(Channel& client, WireReader& reader, const Patience& patience) {
    bool any = false;
    Result<WireHead> head = reader.ReadHead(kMaxHead, patience, &any);
    if (!head.ok()) return false;
    const Result<Framing> framing = FramingOf(*head, false);
    if (!framing.ok()) return false;
    std::string body;
    const auto append = [&body](std::string_view data) {
      body += data;
      return true;
    };
    if (!reader.ReadBody(*framing, patience, append).ok()) return false;

    Exchange exchange;
    const size_t first = head->start_line.find(' '), second = head->start_line.rfind(' ');
    exchange.method = head->start_line.substr(0, first);
    exchange.target = head->start_line.substr(first + 1, second - first - 1);
    exchange.accept = head->Header("accept");
    exchange.content_type = head->Header("content-type");
    exchange.body = body;
    Exchange* kept = nullptr;
    {
      MutexLock lock(mutex_);
      kept = &exchanges_.emplace_back(std::move(exchange));  // a deque: it stays where it is
    }
    for (const char* name : {"accept-encoding", "transfer-encoding", "content-length", "authorization", "host"}) {
      head->headers.erase(name);
    }
    head->headers.emplace("host", url_.Where());
    if (!body.empty()) head->headers.emplace("content-length", std::to_string(body.size()));
    if (!upstream_.authorization().empty()) head->headers.emplace("authorization", upstream_.authorization());
    const Status carried = Carry(client, HeadText(head->start_line, head->headers) + body, kept);
    MutexLock lock(mutex_);
    kept->ended = true;
    if (!carried.ok()) kept->error = carried.ToString();
    return carried.ok();
  }

  Status Carry(Channel& client, const std::string& request, Exchange* kept) {
    const Patience patience = Patience::For(kPatience, stop_.fd());
    LK_ASSIGN_OR_RETURN(UniqueFd fd, Dial(url_, patience));
    Channel server(std::move(fd));
    LK_RETURN_IF_ERROR(server.Connect(client_tls_.get(), url_.host, patience));
    LK_RETURN_IF_ERROR(server.Write(request, patience));
    WireReader reader(server);
    // From here on the client's going ends it: it says nothing before it has its answer.
    Patience answer;
    answer.wake = client.fd();
    bool any = false;
    LK_ASSIGN_OR_RETURN(WireHead head, reader.ReadHead(kMaxHead, answer, &any));
    LK_ASSIGN_OR_RETURN(Framing framing, FramingOf(head, true));
    const bool chunked = framing.kind == Framing::Kind::kChunked;
    {
      MutexLock lock(mutex_);
      const std::string code = head.start_line.size() > 12 ? head.start_line.substr(9, 3) : "";
      std::from_chars(code.data(), code.data() + code.size(), kept->status);
      if (kept->status == 304 || kept->status == 204) framing = {};
      kept->answer_type = head.Header("content-type");
      kept->headers = head.headers;
      kept->streamed = chunked;
    }
    LK_RETURN_IF_ERROR(client.Write(HeadText(head.start_line, head.headers), patience));
    const auto on_data = [&](std::string_view data) {
      std::string piece(data);
      {
        MutexLock lock(mutex_);
        kept->answer += piece;
      }
      if (chunked) {
        char size[20];
        const auto end = std::to_chars(size, size + sizeof size, piece.size(), 16).ptr;
        piece = std::string(size, end) + "\r\n" + piece + "\r\n";
      }
      return client.Write(piece, Patience::For(kPatience, stop_.fd())).ok();
    };
    LK_RETURN_IF_ERROR(reader.ReadBody(framing, answer, on_data).status());
    if (chunked) return client.Write("0\r\n\r\n", Patience::For(kPatience, stop_.fd()));
    return Status::Ok();
  }

  const Endpoint& upstream_;
  testing::TestPki pki_;
  BaseUrl url_;
  TlsContext client_tls_, server_tls_;
  Listener listener_;
  CancelToken stop_;
  mutable Mutex mutex_;
  std::deque<Exchange> exchanges_ LK_GUARDED_BY(mutex_);
  std::vector<int> open_ LK_GUARDED_BY(mutex_);
  std::vector<std::thread> threads_ LK_GUARDED_BY(mutex_);
  std::thread acceptor_;
};

Result<std::unique_ptr<Recorder>> Recorder::Start(const Endpoint& upstream, const std::string& kubeconfig_folder,
                                                  const std::string& name_space) {
  std::unique_ptr<Recorder> recorder(new Recorder);
  recorder->impl_ = std::make_unique<Impl>(upstream);
  LK_RETURN_IF_ERROR(recorder->impl_->Start());
  static std::atomic<int> number{0};  // ports come again
  const std::string url = recorder->impl_->Url();
  recorder->kubeconfig_ = JoinPath(kubeconfig_folder, "recorder" + std::to_string(++number) + ".kubeconfig");
  KubeconfigText text;
  text.server = url;
  text.ca_pem = recorder->impl_->ca_pem();
  text.token = "of no account";
  text.name_space = name_space;
  LK_RETURN_IF_ERROR(WriteFileAtomic(recorder->kubeconfig_, MakeKubeconfig(text), 0600));
  return recorder;
}

Recorder::~Recorder() = default;

std::vector<Exchange> Recorder::Exchanges() const { return impl_->Exchanges(); }

}  // namespace lockkeeper::peers
