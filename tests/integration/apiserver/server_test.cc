// The server as processes over real HTTPS: kill -9, two on one store, many watches, refusals at start.
#include <gtest/gtest.h>
#include <signal.h>
#include <sqlite3.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <random>
#include <thread>

#include "api/base/log.h"
#include "api/server/apiserver.h"
#include "api/transport/http_client.h"
#include "tests/fakes/power_loss_vfs.h"
#include "tests/integration/apiserver/program.h"
#include "tests/support/wait.h"
#include "tests/unit/apiserver/temp_dir.h"

#ifndef LK_TEST_APISERVER
#error "the path of the server program comes from CMakeLists.txt"
#endif

namespace lockkeeper::apiserver {
namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

const std::string kMaps = "/api/v1/namespaces/default/configmaps";

double MsSince(SteadyClock::time_point start) {
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

// What a kubeconfig of ours says: enough of it for a client.
std::unique_ptr<HttpClient> ClientOf(const std::string& kubeconfig, std::string* token) {
  const std::string text = *ReadFile(kubeconfig);
  auto value = [&](const std::string& key) {
    const size_t at = text.find(key + ": ") + key.size() + 2;
    std::string found = text.substr(at, text.find('\n', at) - at);
    if (!found.empty() && found.front() == '"') found = found.substr(1, found.size() - 2);
    return found;
  };
  *token = value("token");
  HttpClientConfig config;
  config.base_url = value("server");
  config.tls.ca_pem = *FromBase64(value("certificate-authority-data"));
  return std::make_unique<HttpClient>(std::move(config));
}

class Server {
 public:
  Server(const std::string& data, std::vector<std::string> more = {}) : data_(data) {
    std::vector<std::string> argv = {LK_TEST_APISERVER, data};
    argv.insert(argv.end(), more.begin(), more.end());
    kubeconfig_ = JoinPath(data, "admin.kubeconfig");
    for (size_t i = 0; i + 1 < more.size(); ++i) {
      if (more[i] == "--kubeconfig") kubeconfig_ = more[i + 1];
    }
    const auto start = SteadyClock::now();
    program_ = std::make_unique<Program>(argv);
    EXPECT_TRUE(program_->WaitForOutput("ready ")) << program_->errors();
    start_ms_ = MsSince(start);
    client_ = ClientOf(kubeconfig_, &token_);
  }

  Result<ClientResponse> Do(const std::string& method, const std::string& target, const std::string& body = "",
                            const std::string& type = "application/json") {
    ClientRequest request;
    request.method = method;
    request.target = target;
    request.body = body;
    request.headers = {{"Authorization", "Bearer " + token_}, {"Content-Type", type}};
    return client_->Do(request);
  }
  int Code(const std::string& method, const std::string& target, const std::string& body = "") {
    const Result<ClientResponse> answer = Do(method, target, body);
    return answer.ok() ? answer->status : -1;
  }
  Json Get(const std::string& target) {
    const Result<ClientResponse> answer = Do("GET", target);
    return answer.ok() ? Json::Parse(answer->body).value_or(Json()) : Json();
  }

  HttpClient& client() { return *client_; }
  const std::string& token() const { return token_; }
  const std::string& kubeconfig() const { return kubeconfig_; }
  Program& program() { return *program_; }
  double start_ms() const { return start_ms_; }

 private:
  std::string data_;
  std::string kubeconfig_;
  std::string token_;
  std::unique_ptr<Program> program_;
  std::unique_ptr<HttpClient> client_;
  double start_ms_ = 0;
};

std::string MapBody(const std::string& name, const std::string& value) {
  return R"({"metadata":{"name":")" + name + R"("},"data":{"k":")" + value + R"("}})";
}

// A watch on a thread of its own; notes names with the time they came.
class Watcher {
 public:
  Watcher(Server& server, const std::string& target) : client_(ClientOf(server.kubeconfig(), &token_)) {
    thread_ = std::thread([this, target] {
      ClientRequest request;
      request.target = target;
      request.headers = {{"Authorization", "Bearer " + token_}};
      end_ = client_->Stream(
          request, std::chrono::seconds(60),
          [this](std::string_view data) {
            MutexLock lock(mutex_);
            text_ += data;
            arrived_.emplace_back(text_.size(), SteadyClock::now());
            return true;
          },
          &cancel_);
      MutexLock lock(mutex_);
      ended_ = true;
    });
  }
  ~Watcher() {
    cancel_.Cancel();
    thread_.join();
  }

  std::string text() {
    MutexLock lock(mutex_);
    return text_;
  }
  bool ended() {
    MutexLock lock(mutex_);
    return ended_;
  }
  // When the byte at this offset had come.
  SteadyClock::time_point TimeOf(size_t offset) {
    MutexLock lock(mutex_);
    for (const auto& [size, when] : arrived_) {
      if (offset < size) return when;
    }
    return SteadyClock::time_point::max();
  }
  // REQUIRES: ended().
  const HttpClient::StreamEnd& end() const { return end_; }

 private:
  std::string token_;
  std::unique_ptr<HttpClient> client_;
  CancelToken cancel_;
  Mutex mutex_;
  std::string text_ LK_GUARDED_BY(mutex_);
  std::vector<std::pair<size_t, SteadyClock::time_point>> arrived_ LK_GUARDED_BY(mutex_);
  bool ended_ LK_GUARDED_BY(mutex_) = false;
  HttpClient::StreamEnd end_;
  std::thread thread_;
};

TEST(ApiServer, AnAnsweredWriteSurvivesKill9AndTokenAndCaStay) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::minstd_rand random(seed);
  TempDir dir;
  std::map<std::string, std::string> answered;
  std::string first_token;
  std::string first_ca;
  double slowest_again = 0;
  for (int round = 0; round < 5; ++round) {
    Server server(dir / "data");
    if (round == 0) {
      first_token = server.token();
      first_ca = *ReadFile(dir / "data/pki/ca.crt");
      std::printf("first start: %.0f ms\n", server.start_ms());
    } else {
      slowest_again = std::max(slowest_again, server.start_ms());
    }
    EXPECT_EQ(server.token(), first_token);
    EXPECT_EQ(*ReadFile(dir / "data/pki/ca.crt"), first_ca);
    for (const auto& [name, value] : answered) {
      EXPECT_EQ(server.Get(kMaps + "/" + name).At({"data", "k"}).AsString(), value) << name;
    }
    std::atomic<bool> killed{false};
    std::thread killer([&, wait = 20 + random() % 150] {
      std::this_thread::sleep_for(milliseconds(wait));  // the moment of the crash, not synchronisation
      server.program().Signal(SIGKILL);
      killed = true;
    });
    for (int i = 0; !killed; ++i) {
      const std::string name = "r" + std::to_string(round) + "-" + std::to_string(i);
      if (server.Code("POST", kMaps, MapBody(name, name)) == 201) answered[name] = name;
    }
    killer.join();
    EXPECT_EQ(server.program().Wait(), 128 + SIGKILL);
  }
  std::printf("start again after kill -9: at most %.0f ms; %zu answered writes, all there\n", slowest_again,
              answered.size());
  EXPECT_GT(answered.size(), 5U);
}

TEST(ApiServer, TwoProcessesShareAStoreOneCounterAndEachOthersWatches) {
  TempDir dir;
  Server one(dir / "one");
  Server two(dir / "two", {"--store", dir / "one/store.db"});
  ASSERT_EQ(one.Code("POST", kMaps, MapBody("counter", "0")), 201);
  ASSERT_EQ(two.Get(kMaps + "/counter").At({"data", "k"}).AsString(), "0");

  // Compare-and-swap across processes: no update is lost, the loser reads 409.
  std::atomic<int> conflicts{0};
  auto count = [&](Server& server) {
    for (int done = 0; done < 40;) {
      Json object = server.Get(kMaps + "/counter");
      object["data"]["k"] = std::to_string(std::stoi(object.At({"data", "k"}).AsString()) + 1);
      const int code = server.Code("PUT", kMaps + "/counter", object.Dump());
      ASSERT_TRUE(code == 200 || code == 409) << code;
      code == 200 ? ++done : ++conflicts;
    }
  };
  std::thread other([&] { count(two); });
  count(one);
  other.join();
  EXPECT_EQ(one.Get(kMaps + "/counter").At({"data", "k"}).AsString(), "80");
  EXPECT_EQ(one.Get(kMaps).At({"metadata", "resourceVersion"}), two.Get(kMaps).At({"metadata", "resourceVersion"}));

  const std::string from = one.Get(kMaps).At({"metadata", "resourceVersion"}).AsString();
  Watcher watcher(two, kMaps + "?watch=1&resourceVersion=" + from);
  std::vector<double> delays;
  for (int i = 0; i < 30; ++i) {
    const std::string name = "w" + std::to_string(i);
    ASSERT_EQ(one.Code("POST", kMaps, MapBody(name, "x")), 201);
    const auto answered = SteadyClock::now();
    const std::string mark = "\"name\":\"" + name + "\"";
    ASSERT_TRUE(WaitUntil([&] { return watcher.text().find(mark) != std::string::npos; })) << name;
    const auto seen = watcher.TimeOf(watcher.text().find(mark));
    delays.push_back(std::chrono::duration<double, std::milli>(seen - answered).count());
  }
  std::sort(delays.begin(), delays.end());
  std::printf("%d conflicts; the other process's write in a watch: median %.1f ms, worst %.1f ms\n", conflicts.load(),
              delays[15], delays[29]);
  EXPECT_LT(delays[27], 50.0);
  std::string story = watcher.text();
  EXPECT_EQ(std::count(story.begin(), story.end(), '\n'), 30) << "each once";
}

TEST(ApiServer, TwoHundredWatchesAllGetEveryEvent) {
  TempDir dir;
  Server server(dir / "data");
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < 200; ++i) watchers.push_back(std::make_unique<Watcher>(server, kMaps + "?watch=1"));
  ASSERT_TRUE(WaitUntil([&] {
    const Result<ClientResponse> metrics = server.Do("GET", "/metrics");
    return metrics.ok() &&
           metrics->body.find("apiserver_longrunning_requests{verb=\"WATCH\"} 200") != std::string::npos;
  }));
  const auto start = SteadyClock::now();
  for (int i = 0; i < 10; ++i) ASSERT_EQ(server.Code("POST", kMaps, MapBody("m" + std::to_string(i), "x")), 201);
  for (auto& watcher : watchers) {
    ASSERT_TRUE(WaitUntil([&] {
      const std::string text = watcher->text();
      return std::count(text.begin(), text.end(), '\n') == 10;
    })) << watcher->text();
  }
  std::printf("10 events to 200 watches: %.0f ms\n", MsSince(start));
  server.program().Signal(SIGTERM);
  for (auto& watcher : watchers) {
    ASSERT_TRUE(WaitUntil([&] { return watcher->ended(); }));
    EXPECT_TRUE(watcher->end().status.ok()) << "a stop ends watches in order: " << watcher->end().status.ToString();
  }
  EXPECT_EQ(server.program().Wait(), 0);
}

TEST(ApiServer, WithoutTokenHealthOnlyAndAForeignCaIsRefusedByTheClient) {
  TempDir dir;
  Server server(dir / "data");
  ClientRequest request;
  request.target = "/readyz";
  EXPECT_EQ(server.client().Do(request)->status, 200);
  request.target = kMaps;
  EXPECT_EQ(server.client().Do(request)->status, 401);
  HttpClientConfig config;
  config.base_url = server.client().config().base_url;
  TempDir other;
  {
    Server foreign(other / "data");
    config.tls.ca_pem = foreign.client().config().tls.ca_pem;
  }
  EXPECT_EQ(HttpClient(config).Do(request).code(), Code::kUnauthorized);
}

// A clock that a test sets.
class SetClock : public Clock {
 public:
  explicit SetClock(Duration behind) : behind_(behind.count()) {}
  Now Read() const override {
    Now now = SystemClock().Read();
    now.wall -= Duration(behind_.load());
    return now;
  }
  void Set(Duration behind) { behind_ = behind.count(); }

 private:
  std::atomic<int64_t> behind_;
};

TEST(ApiServer, ACertificateNearItsEndIsReplacedWithoutARestart) {
  ConfigureLog(LogLevel::kOff, LogFormat::kText);
  TempDir dir;
  // Made 400 days ago, so expired for a client of today.
  SetClock clock(Seconds(400.0 * 86400));
  ApiServerConfig config;
  config.data_dir = dir / "data";
  config.clock = &clock;
  config.collector.housekeeping = milliseconds(20);
  ApiServer server(std::move(config));
  ASSERT_TRUE(server.Start().ok());
  std::string token;
  const std::unique_ptr<HttpClient> client = ClientOf(server.kubeconfig_path(), &token);
  ClientRequest request;
  request.target = "/readyz";
  EXPECT_EQ(client->Do(request).code(), Code::kUnauthorized);
  clock.Set(Seconds(0));
  EXPECT_TRUE(WaitUntil([&] { return client->Do(request).ok(); }));
}

TEST(ApiServer, AFullDiskAnswers507WithTheFileAndWorksAgainWithRoom) {
  ConfigureLog(LogLevel::kOff, LogFormat::kText);
  TempDir dir;
  fakes::PowerLossVfs vfs("server-full");
  ApiServerConfig config;
  config.data_dir = dir / "data";
  config.vfs = vfs.name();
  ApiServer server(std::move(config));
  ASSERT_TRUE(server.Start().ok());
  vfs.SetRoom(30'000);
  HttpRequest request;
  request.method = "POST";
  request.path = kMaps;
  request.body = MapBody("big", std::string(200'000, 'x'));
  HttpResponse refused;
  server.Call(request, refused);
  EXPECT_EQ(refused.status, 507) << refused.body;
  EXPECT_NE(refused.body.find("store.db"), std::string::npos);
  EXPECT_NE(refused.body.find("free space"), std::string::npos);
  vfs.SetRoom(-1);
  HttpResponse made;
  server.Call(request, made);
  EXPECT_EQ(made.status, 201) << made.body;
}

TEST(ApiServer, StartRefusesWhatIsDamagedOrTakenAndNamesIt) {
  TempDir dir;
  {
    Server server(dir / "data");
    for (int i = 0; i < 20; ++i)
      ASSERT_EQ(server.Code("POST", kMaps, MapBody("m" + std::to_string(i), std::string(3000, 'x'))), 201);
    // The port is taken while this one runs.
    const std::string& url = server.client().config().base_url;
    Program second({LK_TEST_APISERVER, dir / "second", "--port", url.substr(url.rfind(':') + 1)});
    EXPECT_EQ(second.Wait(), 1);
    EXPECT_NE(second.errors().find(url.substr(url.rfind(':'))), std::string::npos) << second.errors();
    server.program().Signal(SIGTERM);
    EXPECT_EQ(server.program().Wait(), 0);
  }
  const std::string good = *ReadFile(dir / "data/store.db");
  std::string damaged = good;
  for (size_t i = 8'000; i < damaged.size(); i += 2) damaged[i] = 'z';
  ASSERT_TRUE(WriteFileAtomic(dir / "data/store.db", damaged, 0600).ok());
  Program refused({LK_TEST_APISERVER, dir / "data"});
  EXPECT_EQ(refused.Wait(), 1);
  EXPECT_NE(refused.errors().find(dir / "data/store.db"), std::string::npos) << refused.errors();
  EXPECT_NE(refused.errors().find("put back a copy"), std::string::npos) << refused.errors();
  ASSERT_TRUE(WriteFileAtomic(dir / "data/store.db", good, 0600).ok());
  Server mended(dir / "data");
  EXPECT_EQ(mended.Code("GET", kMaps + "/m19"), 200);
}

}  // namespace
}  // namespace lockkeeper::apiserver
