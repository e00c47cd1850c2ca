#include "controller/http_api.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "api/base/file.h"
#include "controller/metrics.h"
#include "tests/integration/controller/scripted_server.h"
#include "tests/integration/transport/test_pki.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {

using testing::kThings;
using testing::ScriptedServer;

// Answers with what was asked, so that a test reads it off.
void Mirror(const HttpRequest& request, HttpResponse& response) {
  response.body = Json::MakeObject({{"kind", "Mirror"},
                                    {"method", request.method},
                                    {"target", request.target},
                                    {"type", request.Header("content-type")},
                                    {"body", request.body}})
                      .Dump();
}

class HttpApiTest : public ::testing::Test {
 protected:
  HttpApi& Api(HttpApiOptions options = {}) {
    api_ = std::make_unique<HttpApi>(server_.Config(), options);
    return *api_;
  }
  ScriptedServer server_;
  std::unique_ptr<HttpApi> api_;
};

struct Thing {
  static Json Named(const std::string& name, const std::string& version = "") {
    Json metadata = Json::MakeObject({{"namespace", "n s"}});
    if (!name.empty()) metadata.Set("name", name);
    if (!version.empty()) metadata.Set("resourceVersion", version);
    return Json::MakeObject({{"metadata", metadata}});
  }
};

TEST_F(HttpApiTest, EveryVerbGoesWhereKubernetesExpectsIt) {
  server_.OnOther(Mirror);
  HttpApi& api = Api();
  const std::string base = "/apis/example.test/v1/namespaces/n%20s/things";
  const ObjectKey key{"n s", "a"};
  auto answer = api.Get(kThings, key);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->Get("target").AsString(), base + "/a");
  answer = api.Create(kThings, Thing::Named("a"));
  EXPECT_EQ(answer->Get("method").AsString() + " " + answer->Get("target").AsString(),
            "POST " + base + "?fieldManager=lockkeeper");
  answer = api.Update(kThings, Thing::Named("a", "5"));
  EXPECT_EQ(answer->Get("method").AsString() + " " + answer->Get("target").AsString(),
            "PUT " + base + "/a?fieldManager=lockkeeper");
  EXPECT_EQ(answer->Get("type").AsString(), "application/json");
  answer = api.UpdateStatus(kThings, Thing::Named("a", "5"));
  EXPECT_EQ(answer->Get("target").AsString(), base + "/a/status?fieldManager=lockkeeper");
  answer = api.Patch(kThings, key, PatchType::kMerge, Json::MakeObject({{"x", 1}}), "status");
  EXPECT_EQ(answer->Get("method").AsString() + " " + answer->Get("target").AsString(),
            "PATCH " + base + "/a/status?fieldManager=lockkeeper");
  EXPECT_EQ(answer->Get("type").AsString(), "application/merge-patch+json");
  EXPECT_EQ(answer->Get("body").AsString(), "{\"x\":1}");
  answer = api.Patch(kThings, key, PatchType::kJson, Json::MakeArray(), "");
  EXPECT_EQ(answer->Get("type").AsString(), "application/json-patch+json");
  const Resource core{"", "v1", "namespaces", "Namespace", false};
  EXPECT_EQ(api.Get(core, {"", "x"})->Get("target").AsString(), "/api/v1/namespaces/x");
}

TEST_F(HttpApiTest, ADeleteCarriesItsPreconditionsAndTellsGoneFromLingering) {
  std::string body;
  bool lingering = true;
  server_.OnOther([&](const HttpRequest& request, HttpResponse& response) {
    body = request.body;
    response.body = lingering ? R"({"kind":"Thing","metadata":{"name":"a","finalizers":["x"]}})"
                              : R"({"kind":"Status","status":"Success"})";
  });
  auto answer = Api().Delete(kThings, {"ns", "a"}, {.uid = "u", .resource_version = "5", .propagation = "Background"});
  ASSERT_TRUE(answer.ok());
  EXPECT_TRUE(answer->IsObject());
  EXPECT_EQ(Json::Parse(body)->Get("preconditions").Dump(), R"({"uid":"u","resourceVersion":"5"})");
  EXPECT_EQ(Json::Parse(body)->Get("propagationPolicy").AsString(), "Background");
  lingering = false;
  EXPECT_TRUE(Api().Delete(kThings, {"ns", "a"}, {})->IsNull());
}

TEST_F(HttpApiTest, AnEmptyNameNeverReachesTheList) {
  server_.OnOther(Mirror);
  EXPECT_EQ(Api().Delete(kThings, {"ns", ""}, {}).code(), Code::kInvalid);
  EXPECT_EQ(Api().Get(kThings, {"ns", ""}).code(), Code::kInvalid);
}

TEST_F(HttpApiTest, AnErrorSaysWhatWasAttemptedOnWhat) {
  server_.OnOther([](const HttpRequest&, HttpResponse& response) {
    response.status = 404;
    response.body = R"({"kind":"Status","message":"things \"a\" not found","reason":"NotFound","code":404})";
  });
  const auto answer = Api().Get(kThings, {"ns", "a"});
  EXPECT_EQ(answer.code(), Code::kNotFound);
  EXPECT_EQ(answer.status().message(), "get things.example.test ns/a: things \"a\" not found");
}

TEST_F(HttpApiTest, RetryAfterIsObeyedOnThrottlingAndNotWithout) {
  std::atomic<int> calls{0};
  std::atomic<bool> say_when{true};
  server_.OnOther([&](const HttpRequest& request, HttpResponse& response) {
    if (++calls >= 3) return Mirror(request, response);
    response.status = 429;
    if (say_when) response.headers.emplace_back("Retry-After", "0");
  });
  Metrics metrics;
  EXPECT_TRUE(Api({.metrics = &metrics}).Get(kThings, {"ns", "a"}).ok());
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(metrics.Value("rest_client_request_retries_total", {{"verb", "get"}}), 2);
  EXPECT_EQ(metrics.Value("rest_client_requests_total", {{"code", "429"}, {"method", "GET"}, {"host", server_.url()}}),
            2);
  calls = 0;
  say_when = false;
  EXPECT_EQ(Api().Get(kThings, {"ns", "a"}).code(), Code::kUnavailable);
  EXPECT_EQ(calls, 1);
}

TEST_F(HttpApiTest, AVersionFromTheFutureIsNotWaitedFor) {
  testing::Answer answer = testing::ErrorAnswer(
      504, "Timeout", R"({"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large"}]})");
  answer.headers = {{"Retry-After", "1"}};
  server_.OnList(answer);
  EXPECT_EQ(Api().List(kThings, "", {.resource_version = "99"}).code(), Code::kExpired);
  EXPECT_EQ(server_.Lists().size(), 1u);
}

TEST_F(HttpApiTest, RetriesEndAfterTen) {
  std::atomic<int> calls{0};
  server_.OnOther([&](const HttpRequest&, HttpResponse& response) {
    ++calls;
    response.status = 503;
    response.headers.emplace_back("Retry-After", "0");
  });
  EXPECT_EQ(Api().Get(kThings, {"ns", "a"}).code(), Code::kUnavailable);
  EXPECT_EQ(calls, 11);
}

TEST_F(HttpApiTest, AWriteWithAGeneratedNameIsNotRepeatedAfterAServerError) {
  std::atomic<int> calls{0};
  server_.OnOther([&](const HttpRequest&, HttpResponse& response) {
    ++calls;
    response.status = 500;
    response.headers.emplace_back("Retry-After", "0");
  });
  EXPECT_FALSE(Api().Create(kThings, Thing::Named("")).ok());
  EXPECT_EQ(calls, 1);
}

TEST_F(HttpApiTest, CancelAllEndsAWaitForRetryAndRefusesWhatComesAfter) {
  std::atomic<int> calls{0};
  server_.OnOther([&](const HttpRequest&, HttpResponse& response) {
    ++calls;
    response.status = 503;
    response.headers.emplace_back("Retry-After", "30");
  });
  HttpApi& api = Api();
  Code code = Code::kOk;
  std::thread caller([&] { code = api.Get(kThings, {"ns", "a"}).code(); });
  ASSERT_TRUE(WaitUntil([&] { return calls == 1; }));
  api.CancelAll();
  caller.join();
  EXPECT_EQ(code, Code::kCancelled);
  EXPECT_EQ(api.Get(kThings, {"ns", "a"}).code(), Code::kCancelled);
}

class Fence : public WriteFence {
 public:
  Duration Left() const override { return Duration(left.load()); }
  std::atomic<Duration::rep> left{0};
};

TEST_F(HttpApiTest, BehindAClosedFenceNoWriteIsSentAndAnOpenOneClipsItsTime) {
  std::atomic<int> writes{0};
  server_.OnOther([&](const HttpRequest& request, HttpResponse& response) {
    if (request.method != "GET" && ++writes == 2) {
      std::this_thread::sleep_for(std::chrono::milliseconds(400));  // not synchronisation: slower than the fence
    }
    Mirror(request, response);
  });
  Fence fence;
  HttpApi& api = Api();
  api.SetFence(&fence);
  EXPECT_EQ(api.Create(kThings, Thing::Named("a")).code(), Code::kCancelled);
  EXPECT_EQ(writes, 0);
  EXPECT_TRUE(api.Get(kThings, {"ns", "a"}).ok());
  fence.left = Seconds(20).count();
  EXPECT_TRUE(api.Create(kThings, Thing::Named("a")).ok());
  fence.left = Milliseconds(50).count();
  EXPECT_EQ(api.Create(kThings, Thing::Named("b")).code(), Code::kTimeout);
}

class SecureApiTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lk-api-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    dir_ = name;
    Write("ca", pki_.ca_pem());
    const auto pair = pki_.Issue({"s", {}, {"127.0.0.1"}});
    HttpServerConfig config;
    config.tls = std::make_unique<TlsServerConfig>();
    config.tls->certificate_pem = pair.certificate_pem;
    config.tls->private_key_pem = pair.private_key_pem;
    server_ =
        std::make_unique<HttpServer>(std::move(config), [this](const HttpRequest& request, HttpResponse& response) {
          ++requests_;
          MutexLock lock(mutex_);
          if (request.Header("authorization") != "Bearer " + good_token_) response.status = 401;
          response.body = "{}";
        });
    ASSERT_TRUE(server_->Start().ok());
    config_.server = "https://127.0.0.1:" + std::to_string(server_->port());
    config_.ca_file = dir_ + "/ca";
    config_.credentials = NewFileCredentials({.token_file = Write("token", "one")}, SystemClock());
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }
  std::string Write(const std::string& name, const std::string& text) {
    EXPECT_TRUE(WriteFileAtomic(dir_ + "/" + name, text).ok());
    return dir_ + "/" + name;
  }
  void Accept(const std::string& token) {
    MutexLock lock(mutex_);
    good_token_ = token;
  }

  testing::TestPki pki_;
  std::string dir_;
  std::unique_ptr<HttpServer> server_;
  RestConfig config_;
  std::atomic<int> requests_{0};
  Mutex mutex_;
  std::string good_token_ LK_GUARDED_BY(mutex_) = "one";
};

TEST_F(SecureApiTest, ARefusedTokenIsReadAgainOnceAndTheCallSucceeds) {
  HttpApi api(config_, {});
  ASSERT_TRUE(api.Get(kThings, {"ns", "a"}).ok());
  Accept("two");
  Write("token", "two\n");
  EXPECT_TRUE(api.Get(kThings, {"ns", "a"}).ok());
  EXPECT_EQ(requests_, 3);
}

TEST_F(SecureApiTest, ATokenThatStaysWrongIsUnauthorizedWithoutALoop) {
  HttpApi api(config_, {});
  Accept("other");
  EXPECT_EQ(api.Get(kThings, {"ns", "a"}).code(), Code::kUnauthorized);
  EXPECT_EQ(requests_, 1);
}

TEST_F(SecureApiTest, TheWrongAuthorityAndTheWrongNameAreRefusedBeforeAnythingIsSent) {
  RestConfig wrong = config_;
  testing::TestPki foreign;
  wrong.ca_file = Write("foreign", foreign.ca_pem());
  EXPECT_EQ(HttpApi(wrong, {}).Get(kThings, {"ns", "a"}).code(), Code::kUnauthorized);
  wrong = config_;
  wrong.tls_server_name = "kcp.example.test";
  EXPECT_EQ(HttpApi(wrong, {}).Get(kThings, {"ns", "a"}).code(), Code::kUnauthorized);
  wrong = config_;
  wrong.ca_file = dir_ + "/missing";
  const auto answer = HttpApi(wrong, {}).Get(kThings, {"ns", "a"});
  EXPECT_EQ(answer.code(), Code::kNotFound);
  EXPECT_NE(answer.status().message().find("/missing"), std::string::npos);
  EXPECT_EQ(requests_, 0);
}

TEST_F(HttpApiTest, CredentialsAreNotSentInTheClear) {
  std::string seen = "unset";
  server_.OnOther([&](const HttpRequest& request, HttpResponse& response) {
    seen = request.Header("authorization");
    Mirror(request, response);
  });
  RestConfig config = server_.Config();
  config.credentials = NewFileCredentials({.inline_values = {.token = "s3cret"}}, SystemClock());
  EXPECT_TRUE(HttpApi(config, {}).Get(kThings, {"ns", "a"}).ok());
  EXPECT_EQ(seen, "");
}

}  // namespace
}  // namespace lockkeeper
