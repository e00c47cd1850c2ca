#include "api/transport/http_client.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/integration/transport/raw_peer.h"

namespace lockkeeper {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::RawConnection;
using testing::RawPeer;

constexpr char kOk[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

HttpClientConfig For(const std::string& url) {
  HttpClientConfig config;
  config.base_url = url;
  return config;
}

// Runs `call` on a thread, cancels once `reached` is set, and gives the time from the cancel to the return.
template <typename Call>
std::pair<Code, milliseconds> CancelWhen(std::atomic<bool>& reached, CancelToken& token, Call call) {
  Code code = Code::kOk;
  std::thread caller([&] { code = call(); });
  while (!reached.load()) std::this_thread::yield();
  const auto start = std::chrono::steady_clock::now();
  token.Cancel();
  caller.join();
  return {code, std::chrono::duration_cast<milliseconds>(std::chrono::steady_clock::now() - start)};
}

TEST(HttpClient, CancelEndsAConnectThatNobodyAnswers) {
  // Connections beyond a full backlog stay in SYN-SENT.
  auto [listener, port] = testing::ListenOnAnyPort(0);
  std::vector<RawConnection> fillers;
  fillers.push_back(testing::ConnectTo(port));
  HttpClient client(For("http://127.0.0.1:" + std::to_string(port)));
  CancelToken token;
  std::atomic<bool> reached{true};
  const auto [code, took] =
      CancelWhen(reached, token, [&] { return client.Do({.target = "/", .timeout = seconds(20)}, &token).code(); });
  EXPECT_EQ(code, Code::kCancelled);
  EXPECT_LT(took, seconds(2));
}

TEST(HttpClient, CancelEndsAHandshakeThatNobodyAnswers) {
  std::atomic<bool> reached{false};
  RawPeer peer([&](RawConnection& connection, int) {
    reached = true;
    connection.AwaitClose();
  });
  HttpClientConfig config = For("https://127.0.0.1:" + std::to_string(peer.port()));
  config.tls.insecure_skip_verify = true;
  HttpClient client(config);
  CancelToken token;
  const auto [code, took] = CancelWhen(reached, token, [&] { return client.Do({.target = "/"}, &token).code(); });
  EXPECT_EQ(code, Code::kCancelled);
  EXPECT_LT(took, seconds(2));
}

TEST(HttpClient, CancelEndsAReadThatNobodyAnswers) {
  std::atomic<bool> reached{false};
  RawPeer peer([&](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nha");
    reached = true;
    connection.AwaitClose();
  });
  HttpClient client(For(peer.url()));
  CancelToken token;
  const auto [code, took] = CancelWhen(reached, token, [&] { return client.Do({.target = "/"}, &token).code(); });
  EXPECT_EQ(code, Code::kCancelled);
  EXPECT_LT(took, seconds(2));
}

TEST(HttpClient, ACancelBeforeTheCallIsNotLost) {
  RawPeer peer([](RawConnection& connection, int) { connection.AwaitClose(); });
  HttpClient client(For(peer.url()));
  CancelToken token;
  token.Cancel();
  EXPECT_EQ(client.Do({.target = "/"}, &token).code(), Code::kCancelled);
}

TEST(HttpClient, TheDeadlineHoldsForTheWholeCallHoweverBusyThePeerIs) {
  RawPeer peer([](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    pollfd p{connection.fd(), POLLIN, 0};
    while (poll(&p, 1, 5) == 0) connection.Send("x");  // a byte each 5 ms until the client closes
  });
  HttpClient client(For(peer.url()));
  const auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(client.Do({.target = "/", .timeout = milliseconds(150)}).code(), Code::kTimeout);
  EXPECT_LT(std::chrono::steady_clock::now() - start, seconds(5));
}

TEST(HttpClient, ARefusedConnectionIsUnavailableAndNamesTheTarget) {
  int port;
  { port = testing::ListenOnAnyPort().second; }
  HttpClient client(For("http://127.0.0.1:" + std::to_string(port)));
  const auto answer = client.Do({.target = "/"});
  EXPECT_EQ(answer.code(), Code::kUnavailable);
  EXPECT_NE(answer.status().message().find("127.0.0.1:" + std::to_string(port)), std::string::npos);
}

// A reused connection that dies without an answer is replaced once.
class StalePeer {
 public:
  StalePeer()
      : peer_([this](RawConnection& connection, int number) {
          while (true) {
            const std::string head = connection.ReadHead();
            if (head.empty()) return;
            ++requests_;
            if (number == 1 && requests_ == 2) return;  // takes the request, closes without a byte
            connection.Send(kOk);
          }
        }) {}
  std::string url() const { return peer_.url(); }
  int requests() const { return requests_; }

 private:
  std::atomic<int> requests_{0};
  RawPeer peer_;
};

TEST(HttpClient, AStaleConnectionIsReplacedOnce) {
  StalePeer peer;
  HttpClient client(For(peer.url()));
  ASSERT_TRUE(client.Do({.target = "/"}).ok());
  const auto answer = client.Do({.target = "/"});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_TRUE(answer->retried);
  EXPECT_FALSE(answer->reused_connection);
  EXPECT_EQ(peer.requests(), 3);
}

TEST(HttpClient, AWriteThatMustNotBeRepeatedIsNot) {
  StalePeer peer;
  HttpClient client(For(peer.url()));
  ASSERT_TRUE(client.Do({.target = "/"}).ok());
  const auto answer = client.Do({.method = "POST", .target = "/", .body = "", .retry_on_stale = false});
  EXPECT_EQ(answer.code(), Code::kUnavailable);
  EXPECT_EQ(peer.requests(), 2);
}

TEST(HttpClient, AConnectionThatThePeerClosedWhileIdleIsNotUsed) {
  std::atomic<bool> closed{false};
  RawPeer peer([&](RawConnection& connection, int number) {
    connection.ReadHead();
    connection.Send(kOk);
    if (number == 1) {
      connection.Close();
      closed = true;
      return;
    }
    connection.AwaitClose();
  });
  HttpClient client(For(peer.url()));
  ASSERT_TRUE(client.Do({.target = "/"}).ok());
  while (!closed) std::this_thread::yield();
  const auto answer = client.Do({.method = "POST", .target = "/", .retry_on_stale = false});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_FALSE(answer->retried);
}

TEST(HttpClient, ConnectionsAreReusedUntilTheyAreToldToClose) {
  std::atomic<int> connections{0};
  RawPeer peer([&](RawConnection& connection, int) {
    ++connections;
    for (int i = 0; i < 2; ++i) {
      if (connection.ReadHead().empty()) return;
      connection.Send(i == 0 ? kOk : "HTTP/1.1 200 OK\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nok");
    }
  });
  HttpClient client(For(peer.url()));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(client.Do({.target = "/", .retry_on_stale = false}).ok());
  EXPECT_EQ(connections, 2);
}

struct AnswerRow {
  const char* name;
  std::string method;
  std::string wire;
  Code want = Code::kOk;
  int status = 200;
  std::string body{};
};

class Answers : public ::testing::TestWithParam<AnswerRow> {};

TEST_P(Answers, AreReadStrictly) {
  const AnswerRow& row = GetParam();
  RawPeer peer([&](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send(row.wire);
  });
  HttpClient client(For(peer.url()));
  const auto answer = client.Do({.method = row.method, .target = "/"});
  ASSERT_EQ(answer.code(), row.want) << answer.status().ToString();
  if (row.want != Code::kOk) return;
  EXPECT_EQ(answer->status, row.status);
  EXPECT_EQ(answer->body, row.body);
}

INSTANTIATE_TEST_SUITE_P(
    Table, Answers,
    ::testing::Values(
        AnswerRow{"a_length", "GET", "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nabc", Code::kOk, 200, "abc"},
        AnswerRow{
            "chunks_with_extensions_and_trailers", "GET",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\nA\r\n0123456789\r\n0\r\nT: 1\r\n\r\n",
            Code::kOk, 200, "abc0123456789"},
        AnswerRow{"until_the_close", "GET", "HTTP/1.1 200 OK\r\n\r\nabc", Code::kOk, 200, "abc"},
        AnswerRow{"interim_answers_are_skipped", "GET",
                  "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 201 "
                  "Created\r\nContent-Length: 1\r\n\r\nx",
                  Code::kOk, 201, "x"},
        AnswerRow{"an_answer_to_HEAD_has_no_body", "HEAD", "HTTP/1.1 200 OK\r\nContent-Length: 300\r\n\r\n", Code::kOk,
                  200, ""},
        AnswerRow{"204_has_no_body", "DELETE", "HTTP/1.1 204 No Content\r\n\r\n", Code::kOk, 204, ""},
        AnswerRow{"304_has_no_body", "GET", "HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", Code::kOk, 304,
                  ""},
        AnswerRow{"an_error_status_is_an_answer", "GET", "HTTP/1.1 503 Busy\r\nContent-Length: 1\r\n\r\nx", Code::kOk,
                  503, "x"},
        AnswerRow{"cut_inside_a_length", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc", Code::kUnavailable},
        AnswerRow{"cut_before_the_last_chunk", "GET",
                  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", Code::kUnavailable},
        AnswerRow{"cut_inside_the_head", "GET", "HTTP/1.1 200 OK\r\nContent-", Code::kUnavailable},
        AnswerRow{"two_lengths", "GET", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
                  Code::kInternal},
        AnswerRow{"length_and_chunks", "GET",
                  "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
                  Code::kInternal},
        AnswerRow{"a_bad_chunk_size", "GET", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\nabc\r\n",
                  Code::kInternal},
        AnswerRow{"no_HTTP_at_all", "GET", "SSH-2.0-OpenSSH\r\n\r\n", Code::kInternal},
        AnswerRow{"nothing", "GET", "", Code::kUnavailable}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(HttpClient, AHeaderCannotSmuggleALine) {
  HttpClient client(For("http://127.0.0.1:1"));
  EXPECT_EQ(client.Do({.target = "/", .headers = {{"X", "a\r\nY: b"}}}).code(), Code::kInvalid);
  EXPECT_EQ(client.Do({.target = "/ HTTP/1.1\r\nX: y"}).code(), Code::kInvalid);
}

TEST(HttpClient, AnAnswerBeforeTheWholeBodyWasTakenIsSeen) {
  RawPeer peer([](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    shutdown(connection.fd(), SHUT_WR);
    connection.ReadToEnd();
  });
  HttpClient client(For(peer.url()));
  const auto answer = client.Do({.method = "POST", .target = "/", .body = std::string(8u << 20, 'x')});
  ASSERT_TRUE(answer.ok()) << answer.status().ToString();
  EXPECT_EQ(answer->status, 413);
}

HttpClient::StreamEnd StreamOf(const std::string& url, std::string* got, milliseconds idle = seconds(10)) {
  HttpClient client(For(url));
  return client.Stream({.target = "/"}, idle, [got](std::string_view data) {
    got->append(data);
    return true;
  });
}

TEST(HttpStream, AnEndInOrderIsOk) {
  RawPeer peer([](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n");
  });
  std::string got;
  const auto end = StreamOf(peer.url(), &got);
  EXPECT_TRUE(end.status.ok()) << end.status.ToString();
  EXPECT_EQ(got, "abc");
}

TEST(HttpStream, ACutIsUnavailable) {
  RawPeer peer([](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
  });
  std::string got;
  EXPECT_EQ(StreamOf(peer.url(), &got).status.code(), Code::kUnavailable);
  EXPECT_EQ(got, "abc");
}

TEST(HttpStream, SilenceBeyondTheIdleLimitIsATimeout) {
  RawPeer peer([](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    connection.AwaitClose();
  });
  std::string got;
  EXPECT_EQ(StreamOf(peer.url(), &got, milliseconds(50)).status.code(), Code::kTimeout);
}

TEST(HttpStream, AnErrorStatusComesWholeAndNotAsData) {
  RawPeer peer([](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 410 Gone\r\nContent-Length: 4\r\n\r\ngone");
  });
  std::string got;
  const auto end = StreamOf(peer.url(), &got);
  EXPECT_TRUE(end.status.ok());
  EXPECT_EQ(end.response.status, 410);
  EXPECT_EQ(end.response.body, "gone");
  EXPECT_EQ(got, "");
}

TEST(HttpStream, TheCallbackMayEndIt) {
  RawPeer peer([](RawConnection& connection, int) {
    connection.ReadHead();
    connection.Send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    connection.AwaitClose();
  });
  HttpClient client(For(peer.url()));
  const auto end = client.Stream({.target = "/"}, seconds(10), [](std::string_view) { return false; });
  EXPECT_TRUE(end.status.ok());
}

TEST(Url, EncodesAndDecodes) {
  EXPECT_EQ(PercentEncode("a b/c"), "a%20b%2Fc");
  EXPECT_EQ(PercentDecode("a%20b%2fc%zz%2"), "a b/c%zz%2");
  EXPECT_EQ(HttpClient(For("ftp://x")).Do({.target = "/"}).code(), Code::kInvalid);
}

}  // namespace
}  // namespace lockkeeper
