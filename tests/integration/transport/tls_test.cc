// A wrong certificate, a wrong name and a missing CA are each refused.
#include <gtest/gtest.h>

#include "api/transport/http_client.h"
#include "api/transport/http_server.h"
#include "tests/integration/transport/test_pki.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {

using testing::KeyPair;
using testing::TestPki;

TestPki& Pki() {
  static TestPki pki;
  return pki;
}
TestPki& ForeignPki() {
  static TestPki pki;
  return pki;
}

std::unique_ptr<HttpServer> Serve(const KeyPair& pair, const std::string& client_ca = "") {
  HttpServerConfig config;
  config.tls = std::make_unique<TlsServerConfig>();
  config.tls->certificate_pem = pair.certificate_pem;
  config.tls->private_key_pem = pair.private_key_pem;
  config.tls->client_ca_pem = client_ca;
  auto server = std::make_unique<HttpServer>(
      std::move(config), [](const HttpRequest& request, HttpResponse& response) { response.body = request.path; });
  EXPECT_TRUE(server->Start().ok());
  return server;
}

struct Row {
  const char* name;
  TestPki::Subject server;
  std::string host = "127.0.0.1";
  std::string server_name{};
  bool foreign_server = false;
  bool no_ca = false;
  bool insecure = false;
  Code want = Code::kOk;
  std::string want_text{};
};

class TlsTable : public ::testing::TestWithParam<Row> {};

TEST_P(TlsTable, Verifies) {
  const Row& row = GetParam();
  auto server = Serve((row.foreign_server ? ForeignPki() : Pki()).Issue(row.server));
  HttpClientConfig config;
  config.base_url = "https://" + row.host + ":" + std::to_string(server->port());
  if (!row.no_ca) config.tls.ca_pem = Pki().ca_pem();
  config.tls.server_name = row.server_name;
  config.tls.insecure_skip_verify = row.insecure;
  HttpClient client(config);
  const auto answer = client.Do({.target = "/x"});
  EXPECT_EQ(answer.code(), row.want) << answer.status().ToString();
  if (row.want == Code::kOk) {
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->body, "/x");
  } else {
    EXPECT_NE(answer.status().message().find(row.want_text), std::string::npos) << answer.status().ToString();
  }
}

INSTANTIATE_TEST_SUITE_P(Table, TlsTable,
                         ::testing::Values(Row{.name = "the_right_address_is_accepted",
                                               .server = {"s", {}, {"127.0.0.1"}}},
                                           Row{.name = "the_right_name_is_accepted",
                                               .server = {"s", {"localhost"}, {}},
                                               .host = "localhost"},
                                           Row{.name = "a_wildcard_for_one_label_is_accepted",
                                               .server = {"s", {"*.example.test"}, {}},
                                               .server_name = "api.example.test"},
                                           Row{.name = "another_name_than_the_host_is_accepted_when_asked_for",
                                               .server = {"s", {"api.example.test"}, {}},
                                               .server_name = "api.example.test"},
                                           Row{.name = "another_address_than_the_host_is_accepted_when_asked_for",
                                               .server = {"s", {}, {"10.1.2.3"}},
                                               .server_name = "10.1.2.3"},
                                           Row{.name = "no_check_is_made_when_told_so",
                                               .server = {"s", {}, {}, false, true},
                                               .foreign_server = true,
                                               .no_ca = true,
                                               .insecure = true},
                                           Row{.name = "a_wrong_address_is_refused",
                                               .server = {"s", {"localhost"}, {"127.0.0.2"}},
                                               .want = Code::kUnauthorized,
                                               .want_text = "IP address mismatch"},
                                           Row{.name = "a_wrong_name_is_refused",
                                               .server = {"s", {"other"}, {"127.0.0.1"}},
                                               .host = "localhost",
                                               .want = Code::kUnauthorized,
                                               .want_text = "hostname mismatch"},
                                           Row{.name = "a_common_name_is_no_name",
                                               .server = {"localhost", {}, {}},
                                               .host = "localhost",
                                               .want = Code::kUnauthorized,
                                               .want_text = "mismatch"},
                                           Row{.name = "a_wrong_server_name_is_refused",
                                               .server = {"s", {"localhost"}, {}},
                                               .host = "localhost",
                                               .server_name = "api.example.test",
                                               .want = Code::kUnauthorized,
                                               .want_text = "hostname mismatch"},
                                           Row{.name = "a_certificate_of_another_authority_is_refused",
                                               .server = {"s", {}, {"127.0.0.1"}},
                                               .foreign_server = true,
                                               .want = Code::kUnauthorized,
                                               .want_text = "certificate is refused"},
                                           Row{.name = "an_expired_certificate_is_refused",
                                               .server = {"s", {}, {"127.0.0.1"}, false, true},
                                               .want = Code::kUnauthorized,
                                               .want_text = "expired"},
                                           Row{.name = "a_client_certificate_does_not_serve",
                                               .server = {"s", {}, {"127.0.0.1"}, true},
                                               .want = Code::kUnauthorized,
                                               .want_text = "certificate is refused"},
                                           Row{.name = "a_missing_authority_is_refused",
                                               .server = {"s", {}, {"127.0.0.1"}},
                                               .no_ca = true,
                                               .want = Code::kInvalid,
                                               .want_text = "give a CA"}),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(TlsClientCertificate, IsSentAndCheckedAndItsAbsenceIsRefused) {
  auto server = Serve(Pki().Issue({"s", {}, {"127.0.0.1"}}), Pki().ca_pem());
  HttpClientConfig config;
  config.base_url = "https://127.0.0.1:" + std::to_string(server->port());
  config.tls.ca_pem = Pki().ca_pem();
  const auto refused = HttpClient(config).Do({.target = "/x"});
  EXPECT_EQ(refused.code(), Code::kUnauthorized) << refused.status().ToString();

  const KeyPair own = Pki().Issue({"me", {}, {}, true});
  config.tls.certificate_pem = own.certificate_pem;
  config.tls.private_key_pem = own.private_key_pem;
  const auto answer = HttpClient(config).Do({.target = "/x"});
  EXPECT_TRUE(answer.ok()) << answer.status().ToString();

  const KeyPair foreign = ForeignPki().Issue({"me", {}, {}, true});
  config.tls.certificate_pem = foreign.certificate_pem;
  config.tls.private_key_pem = foreign.private_key_pem;
  const auto foreign_refused = HttpClient(config).Do({.target = "/x"});
  EXPECT_EQ(foreign_refused.code(), Code::kUnauthorized) << foreign_refused.status().ToString();
}

TEST(TlsClientCertificate, AKeyOfAnotherCertificateIsAnErrorThatSaysSo) {
  HttpClientConfig config;
  config.base_url = "https://127.0.0.1:1";
  config.tls.ca_pem = Pki().ca_pem();
  config.tls.certificate_pem = Pki().Issue({"a", {}, {}, true}).certificate_pem;
  config.tls.private_key_pem = Pki().Issue({"b", {}, {}, true}).private_key_pem;
  const auto answer = HttpClient(config).Do({.target = "/x"});
  EXPECT_EQ(answer.code(), Code::kInvalid);
  EXPECT_EQ(answer.status().message().find("BEGIN"), std::string::npos);
}

TEST(TlsServer, AConnectionClosedWhileIdleIsReplacedBeforeItFails) {
  const KeyPair pair = Pki().Issue({"s", {}, {"127.0.0.1"}});
  HttpServerConfig server_config;
  server_config.tls = std::make_unique<TlsServerConfig>();
  server_config.tls->certificate_pem = pair.certificate_pem;
  server_config.tls->private_key_pem = pair.private_key_pem;
  server_config.idle_timeout = std::chrono::milliseconds(50);
  HttpServer server(std::move(server_config), [](const HttpRequest&, HttpResponse& response) { response.body = "ok"; });
  ASSERT_TRUE(server.Start().ok());
  HttpClientConfig config;
  config.base_url = "https://127.0.0.1:" + std::to_string(server.port());
  config.tls.ca_pem = Pki().ca_pem();
  HttpClient client(config);
  for (int i = 0; i < 5; ++i) {
    const auto answer = client.Do({.target = "/"});
    ASSERT_TRUE(answer.ok()) << answer.status().ToString();
    ASSERT_TRUE(WaitUntil([&] { return server.open_connections() == 0; })) << "the idle connection was not closed";
  }
}

}  // namespace
}  // namespace lockkeeper
