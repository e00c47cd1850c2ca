#include "api/transport/http_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <atomic>
#include <mutex>

#include "api/base/file.h"
#include "api/transport/http_client.h"
#include "tests/integration/transport/raw_peer.h"
#include "tests/integration/transport/test_pki.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RawConnection;

void Echo(const HttpRequest& request, HttpResponse& response) {
  response.body = request.method + " " + request.path + " " + std::to_string(request.body.size());
}

HttpClientConfig ClientOf(const HttpServer& server) {
  HttpClientConfig config;
  config.base_url = "http://127.0.0.1:" + std::to_string(server.port());
  return config;
}

template <typename Condition>
bool Eventually(Condition condition) {
  return WaitUntil(condition, seconds(10));
}

void AllowManyFiles() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 65536);
  setrlimit(RLIMIT_NOFILE, &limit);
}

TEST(HttpServer, EveryMethodIsServedWithItsBody) {
  HttpServer server({}, Echo);
  ASSERT_TRUE(server.Start().ok());
  HttpClient client(ClientOf(server));
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    const bool body = std::string(method) != "GET";
    const auto answer = client.Do({.method = method, .target = "/a%2Fb?x=1", .body = body ? "{}" : ""});
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_EQ(answer->body, std::string(method) + " /a/b " + (body ? "2" : "0"));
  }
  const auto head = client.Do({.method = "HEAD", .target = "/"});
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->body, "");
  EXPECT_EQ(head->Header("content-length"), "8");
}

TEST(HttpServer, QueryHeadersAndConnectionNumbersArrive) {
  HttpServer server({}, [](const HttpRequest& request, HttpResponse& response) {
    response.body = request.Query("labelSelector") + "|" + request.Header("x-test") + "|" +
                    std::to_string(request.connection) + "." + std::to_string(request.sequence);
    response.headers.emplace_back("X-Answer", "yes");
    response.status = 201;
    response.content_type = "text/plain";
  });
  ASSERT_TRUE(server.Start().ok());
  HttpClient client(ClientOf(server));
  for (int i = 1; i <= 2; ++i) {
    const auto answer = client.Do({.target = "/?labelSelector=a%3Db%2Cc+d", .headers = {{"X-Test", "50%25 v"}}});
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->body, "a=b,c d|50%25 v|1." + std::to_string(i));
    EXPECT_EQ(answer->status, 201);
    EXPECT_EQ(answer->Header("x-answer"), "yes");
    EXPECT_EQ(answer->Header("content-type"), "text/plain");
  }
}

TEST(HttpServer, ABodyBeyondTheLimitIs413WhetherItsLengthIsSaidOrNot) {
  HttpServerConfig config;
  config.max_body_bytes = 1000;
  HttpServer server(std::move(config), Echo);
  ASSERT_TRUE(server.Start().ok());
  HttpClient client(ClientOf(server));
  auto answer = client.Do({.method = "POST", .target = "/", .body = std::string(5000000, 'x')});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->status, 413);
  EXPECT_EQ(answer->Header("connection"), "close");

  RawConnection raw = testing::ConnectTo(server.port());
  std::string chunk(600, 'x');
  raw.Send("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n258\r\n" + chunk + "\r\n258\r\n" + chunk +
           "\r\n0\r\n\r\n");
  EXPECT_EQ(raw.ReadToEnd().substr(0, 12), "HTTP/1.1 413");
}

TEST(HttpServer, ExpectContinueIsAnsweredBeforeTheBody) {
  HttpServer server({}, Echo);
  ASSERT_TRUE(server.Start().ok());
  RawConnection raw = testing::ConnectTo(server.port());
  raw.Send("POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(raw.ReadHead(), "HTTP/1.1 100 Continue\r\n\r\n");
  raw.Send("{}");
  EXPECT_NE(raw.ReadToEnd().find("POST / 2"), std::string::npos);
}

struct BadRow {
  const char* name;
  std::string wire;
  std::string want;
};
class BadRequests : public ::testing::TestWithParam<BadRow> {};

TEST_P(BadRequests, AreAnsweredAndTheConnectionIsClosed) {
  HttpServer server({}, Echo);
  ASSERT_TRUE(server.Start().ok());
  RawConnection raw = testing::ConnectTo(server.port());
  raw.Send(GetParam().wire);
  const std::string answer = raw.ReadToEnd();
  EXPECT_EQ(answer.substr(0, 12), "HTTP/1.1 " + GetParam().want) << answer;
  EXPECT_NE(answer.find("Connection: close"), std::string::npos) << answer;
}

INSTANTIATE_TEST_SUITE_P(
    Table, BadRequests,
    ::testing::Values(
        BadRow{"no_request_line", "NONSENSE\r\n\r\n", "400"},
        BadRow{"an_unknown_method", "BREW / HTTP/1.1\r\n\r\n", "400"},
        BadRow{"a_request_line_that_is_too_long", "GET /" + std::string(9000, 'a') + " HTTP/1.1\r\n\r\n", "414"},
        BadRow{"headers_that_are_too_long", "GET / HTTP/1.1\r\nX: " + std::string(80000, 'a') + "\r\n\r\n", "431"},
        BadRow{"two_lengths", "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400"},
        BadRow{"length_and_chunks",
               "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "400"},
        BadRow{"a_length_that_is_no_number", "POST / HTTP/1.1\r\nContent-Length: +1\r\n\r\na", "400"},
        BadRow{"a_space_before_the_colon", "GET / HTTP/1.1\r\nHost : x\r\n\r\n", "400"},
        BadRow{"a_range_that_would_exhaust_a_matcher",
               "GET / HTTP/1.1\r\nConnection: close\r\nRange: bytes=" + std::string(60000, '1') + "\r\n\r\n", "200"}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(HttpServer, ASlowRequestIsEndedAfterTheReadTimeout) {
  HttpServerConfig config;
  config.read_timeout = milliseconds(50);
  HttpServer server(std::move(config), Echo);
  ASSERT_TRUE(server.Start().ok());
  RawConnection raw = testing::ConnectTo(server.port());
  raw.Send("GET / HTTP/1.1\r\nHos");
  EXPECT_EQ(raw.ReadToEnd().substr(0, 12), "HTTP/1.1 408");
}

TEST(HttpServer, AStreamIsSeenAsItIsWrittenAndItsEndIsInOrder) {
  std::atomic<int> received{0};
  HttpServer server({}, [&](const HttpRequest&, HttpResponse& response) {
    response.stream = [&](ChunkWriter& writer) {
      for (int i = 0; i < 3; ++i) {
        // The next line is written only once the one before has arrived: nothing is held back.
        if (!Eventually([&] { return received == i; }) || !writer.Write("line\n")) return false;
      }
      return true;
    };
  });
  ASSERT_TRUE(server.Start().ok());
  HttpClient client(ClientOf(server));
  // A watch must not be compressed, whatever the client would take.
  const auto end = client.Stream({.target = "/", .headers = {{"Accept-Encoding", "gzip, br"}}}, seconds(10),
                                 [&](std::string_view data) {
                                   EXPECT_EQ(data, "line\n");
                                   ++received;
                                   return true;
                                 });
  EXPECT_TRUE(end.status.ok()) << end.status.ToString();
  EXPECT_EQ(received, 3);
}

TEST(HttpServer, ACutStreamIsToldFromAnEndedOne) {
  HttpServer server({}, [](const HttpRequest& request, HttpResponse& response) {
    const bool whole = request.path == "/whole";
    response.stream = [whole](ChunkWriter& writer) { return writer.Write("half") && whole; };
  });
  ASSERT_TRUE(server.Start().ok());
  HttpClient client(ClientOf(server));
  std::string got;
  const auto take = [&got](std::string_view data) {
    got += data;
    return true;
  };
  EXPECT_TRUE(client.Stream({.target = "/whole"}, seconds(10), take).status.ok());
  EXPECT_EQ(client.Stream({.target = "/cut"}, seconds(10), take).status.code(), Code::kUnavailable);
  EXPECT_EQ(got, "halfhalf");
}

TEST(HttpServer, AbortClosesWithoutAnAnswer) {
  HttpServer server({}, [](const HttpRequest&, HttpResponse& response) { response.abort = true; });
  ASSERT_TRUE(server.Start().ok());
  RawConnection raw = testing::ConnectTo(server.port());
  raw.Send("GET / HTTP/1.1\r\n\r\n");
  char byte;
  EXPECT_EQ(recv(raw.fd(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, ECONNRESET);
}

TEST(HttpServer, AHandlerThatThrowsEndsItsConnectionAndNoOther) {
  HttpServer server({}, [](const HttpRequest& request, HttpResponse&) {
    if (request.path == "/throw") throw std::runtime_error("secret detail");
  });
  ASSERT_TRUE(server.Start().ok());
  HttpClient client(ClientOf(server));
  EXPECT_EQ(client.Do({.target = "/throw"}).code(), Code::kUnavailable);
  EXPECT_TRUE(client.Do({.target = "/"}).ok());
}

TEST(HttpServer, AStreamNoticesThatItsClientLeft) {
  std::atomic<bool> noticed{false}, streaming{false};
  HttpServer server({}, [&](const HttpRequest&, HttpResponse& response) {
    response.stream = [&](ChunkWriter& writer) {
      streaming = true;
      noticed = Eventually([&] { return !writer.Alive(); });
      return false;
    };
  });
  ASSERT_TRUE(server.Start().ok());
  {
    RawConnection raw = testing::ConnectTo(server.port());
    raw.Send("GET / HTTP/1.1\r\n\r\n");
    ASSERT_TRUE(Eventually([&] { return streaming.load(); }));
  }
  EXPECT_TRUE(Eventually([&] { return noticed.load(); }));
  EXPECT_TRUE(Eventually([&] { return server.open_connections() == 0; }));
}

TEST(HttpServer, StopCutsStreamsAndIdleConnections) {
  std::atomic<bool> streaming{false};
  auto server =
      std::make_unique<HttpServer>(HttpServerConfig{}, [&](const HttpRequest& request, HttpResponse& response) {
        if (request.path != "/watch") return;
        response.stream = [&](ChunkWriter& writer) {
          writer.Write("x");
          streaming = true;
          while (writer.Alive()) std::this_thread::sleep_for(milliseconds(1));  // not synchronisation: until cut
          return false;
        };
      });
  ASSERT_TRUE(server->Start().ok());
  HttpClient client(ClientOf(*server));
  ASSERT_TRUE(client.Do({.target = "/"}).ok());  // leaves an idle connection
  Status status;
  std::thread watcher(
      [&] { status = client.Stream({.target = "/watch"}, seconds(30), [](std::string_view) { return true; }).status; });
  ASSERT_TRUE(Eventually([&] { return streaming.load(); }));
  server->Stop();
  watcher.join();
  EXPECT_EQ(status.code(), Code::kUnavailable);
  EXPECT_EQ(server->open_connections(), 0u);
  EXPECT_EQ(client.Do({.target = "/"}).code(), Code::kUnavailable);
}

TEST(HttpServer, DrainingAnswersWhatRunsSaysCloseAndClosesWhatIsIdle) {
  std::atomic<bool> inside{false}, go{false};
  HttpServer server({}, [&](const HttpRequest& request, HttpResponse& response) {
    response.body = "done";
    if (request.path != "/slow") return;
    inside = true;
    Eventually([&] { return go.load(); });
  });
  ASSERT_TRUE(server.Start().ok());
  RawConnection idle = testing::ConnectTo(server.port());
  idle.Send("GET / HTTP/1.1\r\n\r\n");
  idle.ReadHead();
  idle.ReadExactly(4);
  RawConnection busy = testing::ConnectTo(server.port());
  busy.Send("GET /slow HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(Eventually([&] { return inside.load(); }));
  server.DrainConnections();
  EXPECT_EQ(idle.ReadToEnd(), "");
  go = true;
  const std::string head = busy.ReadHead();
  EXPECT_NE(head.find("200 OK"), std::string::npos);
  EXPECT_NE(head.find("Connection: close"), std::string::npos);
  EXPECT_EQ(busy.ReadToEnd(), "done");
  // The listener is still open: a new connection gets its one answer.
  HttpClient client(ClientOf(server));
  const auto answer = client.Do({.target = "/"});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->Header("connection"), "close");
}

TEST(HttpServer, AConnectionThatHasNotAskedYetIsWaitedForInADrainAndThenClosed) {
  for (const bool before : {true, false}) {
    SCOPED_TRACE(before ? "connected before the drain" : "after it");
    HttpServerConfig config;
    config.first_request_patience = std::chrono::seconds(20);
    HttpServer server(std::move(config), Echo);
    ASSERT_TRUE(server.Start().ok());
    if (!before) server.DrainConnections();
    RawConnection fresh = testing::ConnectTo(server.port());
    ASSERT_TRUE(Eventually([&] { return server.open_connections() == 1; }));
    if (before) server.DrainConnections();
    pollfd ended{fresh.fd(), POLLIN, 0};
    EXPECT_EQ(poll(&ended, 1, 50), 0) << "closed before it asked";
    fresh.Send("GET / HTTP/1.1\r\n\r\n");
    const std::string head = fresh.ReadHead();
    EXPECT_NE(head.find("200 OK"), std::string::npos);
    EXPECT_NE(head.find("Connection: close"), std::string::npos);
  }
  HttpServerConfig config;
  config.first_request_patience = std::chrono::milliseconds(20);
  HttpServer server(std::move(config), Echo);
  ASSERT_TRUE(server.Start().ok());
  RawConnection silent = testing::ConnectTo(server.port());
  server.DrainConnections();
  EXPECT_EQ(silent.ReadToEnd(), "");
}

TEST(HttpServer, AClosedListenerRefusesWhileOpenConnectionsGoOn) {
  HttpServer server({}, Echo);
  ASSERT_TRUE(server.Start().ok());
  HttpClient old(ClientOf(server));
  ASSERT_TRUE(old.Do({.target = "/"}).ok());
  server.CloseListener();
  HttpClient fresh(ClientOf(server));
  EXPECT_EQ(fresh.Do({.target = "/"}).code(), Code::kUnavailable);
  const auto answer = old.Do({.target = "/"});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_TRUE(answer->reused_connection);
}

TEST(HttpServer, ConnectionsQueueBetweenListenAndStart) {
  HttpServer server({}, Echo);
  ASSERT_TRUE(server.Listen().ok());
  ASSERT_GT(server.port(), 0);
  RawConnection raw = testing::ConnectTo(server.port());
  raw.Send("GET / HTTP/1.1\r\nConnection: close\r\n\r\n");
  ASSERT_TRUE(server.Start().ok());
  EXPECT_NE(raw.ReadToEnd().find("GET / 0"), std::string::npos);
}

TEST(HttpServer, AnAddressInUseIsNamed) {
  HttpServer first({}, Echo);
  ASSERT_TRUE(first.Start().ok());
  HttpServerConfig config;
  config.port = first.port();
  HttpServer second(std::move(config), Echo);
  const Status status = second.Start();
  EXPECT_EQ(status.code(), Code::kBusy);
  EXPECT_NE(status.message().find("127.0.0.1:" + std::to_string(first.port())), std::string::npos);
}

TEST(HttpServer, AWatchHoldsNobodyUpAndFiveHundredConnectionsAreServed) {
  AllowManyFiles();
  HttpServer server({}, [](const HttpRequest& request, HttpResponse& response) {
    if (request.path == "/") return Echo(request, response);
    response.stream = [](ChunkWriter& writer) {
      if (!writer.Write("hello")) return false;
      while (writer.Alive()) std::this_thread::sleep_for(milliseconds(20));  // not synchronisation: until cut
      return false;
    };
  });
  ASSERT_TRUE(server.Start().ok());
  std::vector<RawConnection> watches;
  for (int i = 0; i < 500; ++i) {
    watches.push_back(testing::ConnectTo(server.port()));
    watches.back().Send("GET /watch HTTP/1.1\r\n\r\n");
  }
  for (auto& watch : watches) {
    watch.ReadHead();
    ASSERT_EQ(watch.ReadExactly(10), "5\r\nhello\r\n");
  }
  EXPECT_EQ(server.open_connections(), 500u);
  HttpClient client(ClientOf(server));
  EXPECT_TRUE(client.Do({.target = "/"}).ok());
}

TEST(HttpServer, BeyondTheMostConnectionsNewOnesWaitForAFreePlace) {
  HttpServerConfig config;
  config.max_connections = 1;
  HttpServer server(std::move(config), Echo);
  ASSERT_TRUE(server.Start().ok());
  auto first = std::make_unique<RawConnection>(testing::ConnectTo(server.port()));
  first->Send("GET / HTTP/1.1\r\n\r\n");
  first->ReadHead();
  RawConnection second = testing::ConnectTo(server.port());
  second.Send("GET /2 HTTP/1.1\r\nConnection: close\r\n\r\n");
  pollfd p{second.fd(), POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 50), 0);
  first.reset();
  EXPECT_NE(second.ReadToEnd().find("GET /2 0"), std::string::npos);
}

TEST(HttpServer, DescriptorsBeyond1023WorkOnBothSides) {
  AllowManyFiles();
  std::vector<UniqueFd> fillers;
  while (fillers.empty() || fillers.back().get() < 1100) {
    fillers.emplace_back(open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_TRUE(static_cast<bool>(fillers.back()));
  }
  testing::TestPki pki;
  const auto pair = pki.Issue({"s", {}, {"127.0.0.1"}});
  HttpServerConfig config;
  config.tls = std::make_unique<TlsServerConfig>();
  config.tls->certificate_pem = pair.certificate_pem;
  config.tls->private_key_pem = pair.private_key_pem;
  HttpServer server(std::move(config), Echo);
  ASSERT_TRUE(server.Start().ok());
  HttpClientConfig client_config;
  client_config.base_url = "https://127.0.0.1:" + std::to_string(server.port());
  client_config.tls.ca_pem = pki.ca_pem();
  HttpClient client(client_config);
  for (int i = 0; i < 3; ++i) {
    const auto answer = client.Do({.method = "POST", .target = "/", .body = std::string(2000000, 'x')});
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    EXPECT_EQ(answer->body, "POST / 2000000");
  }
}

class UnixSocket : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lk-http-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  HttpServerConfig Config() const {
    HttpServerConfig config;
    config.unix_path = dir_ + "/s";
    return config;
  }
  HttpClientConfig Client() const {
    HttpClientConfig config;
    config.base_url = "unix:" + dir_ + "/s";
    return config;
  }
  std::string dir_;
};

TEST_F(UnixSocket, ServesItsOwnerAndTellsTheUserOfThePeer) {
  HttpServer server(Config(), [](const HttpRequest& request, HttpResponse& response) {
    response.body = request.peer + " " + std::to_string(request.peer_uid) + request.path;
  });
  ASSERT_TRUE(server.Start().ok());
  struct stat info {};
  ASSERT_EQ(stat((dir_ + "/s").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  const auto answer = HttpClient(Client()).Do({.target = "/x"});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->body, "unix " + std::to_string(getuid()) + "/x");
  server.Stop();
  EXPECT_FALSE(PathExists(dir_ + "/s"));
}

TEST_F(UnixSocket, AStaleFileIsReplacedAndALiveOneIsNot) {
  {
    // A socket file without a listener, as a crash leaves it.
    const UniqueFd dead(socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    strncpy(address.sun_path, (dir_ + "/s").c_str(), sizeof address.sun_path - 1);
    ASSERT_EQ(bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  }
  HttpServer server(Config(), Echo);
  ASSERT_TRUE(server.Start().ok());
  HttpServer second(Config(), Echo);
  EXPECT_EQ(second.Start().code(), Code::kBusy);
  EXPECT_TRUE(HttpClient(Client()).Do({.target = "/x"}).ok());
}

TEST_F(UnixSocket, AFileThatIsNoSocketIsLeftAlone) {
  ASSERT_TRUE(WriteFileAtomic(dir_ + "/s", "precious").ok());
  HttpServer server(Config(), Echo);
  EXPECT_EQ(server.Start().code(), Code::kAlreadyExists);
  EXPECT_TRUE(PathExists(dir_ + "/s"));
}

TEST(HttpServer, AnIdleServerDoesNotWakeUp) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer has a thread of its own that wakes up";
#endif
  HttpServer server({}, Echo);
  ASSERT_TRUE(server.Start().ok());
  HttpClient client(ClientOf(server));
  ASSERT_TRUE(client.Do({.target = "/"}).ok());
  const auto switches = [] {
    long sum = 0;
    const auto tasks = ListDir("/proc/self/task");
    for (const auto& task : *tasks) {
      const auto status = ReadFile("/proc/self/task/" + task + "/status");
      if (!status.ok() || task == std::to_string(getpid())) continue;
      const size_t at = status->find("\nvoluntary_ctxt_switches:");
      if (at != std::string::npos) sum += strtol(status->c_str() + at + 25, nullptr, 10);
    }
    return sum;
  };
  // The threads have gone to sleep once the count stands still.
  long before = -1;
  ASSERT_TRUE(Eventually([&] {
    const long now = switches();
    const bool still = now == before;
    before = now;
    if (!still) std::this_thread::sleep_for(milliseconds(20));  // not synchronisation: between two looks
    return still;
  }));
  std::this_thread::sleep_for(milliseconds(300));  // not synchronisation: idle time is what is measured
  EXPECT_EQ(switches(), before);
}

}  // namespace
}  // namespace lockkeeper
