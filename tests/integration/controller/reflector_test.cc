#include "controller/reflector.h"

#include <gtest/gtest.h>

#include <thread>

#include "controller/metrics.h"
#include "tests/integration/controller/scripted_server.h"
#include "tests/support/wait.h"

namespace lockkeeper {
namespace {

using testing::BookmarkLine;
using testing::ErrorAnswer;
using testing::ErrorLine;
using testing::EventLine;
using testing::kThings;
using testing::ListOf;
using testing::ScriptedServer;
using testing::ThingText;
using testing::WatchOf;
using End = testing::Answer::End;
using std::chrono::milliseconds;

class ReflectorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.watch_list = false;
    options_.backoff_base = milliseconds(1);
    options_.backoff_max = milliseconds(4);
    options_.very_short_watch = milliseconds(0);
    options_.away_after = milliseconds(20000);
    options_.idle_timeout = milliseconds(20000);
    options_.metrics = &metrics_;
    cache_.AddHandler([this](const CacheEvent& event) {
      MutexLock lock(mutex_);
      log_ += "+~-"[static_cast<int>(event.type)] + event.object->key().name + event.object->resource_version() + " ";
    });
  }
  void TearDown() override {
    cancel_.Cancel();
    if (thread_.joinable()) thread_.join();
  }
  void Start() {
    api_ = std::make_unique<HttpApi>(server_.Config(), HttpApiOptions{});
    reflector_ = std::make_unique<Reflector>(*api_, cache_, options_);
    thread_ = std::thread([this] { reflector_->Run(cancel_); });
  }
  std::string Log() {
    MutexLock lock(mutex_);
    return log_;
  }
  bool LogBecomes(const std::string& want) {
    return WaitUntil([&] { return Log() == want; });
  }
  std::string VersionOf(const std::string& query) {
    const size_t at = query.find("resourceVersion=");
    return at == std::string::npos ? "" : query.substr(at + 16, query.find('&', at) - at - 16);
  }

  ScriptedServer server_;
  Metrics metrics_;
  ReflectorOptions options_;
  Cache cache_{kThings};
  CancelToken cancel_;
  std::unique_ptr<HttpApi> api_;
  std::unique_ptr<Reflector> reflector_;
  std::thread thread_;
  Mutex mutex_;
  std::string log_;
};

TEST_F(ReflectorTest, ListsFromTheWatchCacheThenWatchesFromThere) {
  server_.OnList(ListOf(10, {ThingText("a", 5)}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("b", 11)), EventLine("MODIFIED", ThingText("a", 12)),
                           EventLine("DELETED", ThingText("b", 13))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 +b11 ~a12 -b13 ")) << Log();
  EXPECT_TRUE(cache_.HasSynced());
  EXPECT_EQ(cache_.resource_version(), "13");
  EXPECT_EQ(VersionOf(server_.Lists()[0]), "0");
  EXPECT_NE(server_.Lists()[0].find("limit=500"), std::string::npos);
  EXPECT_EQ(VersionOf(server_.Watches()[0]), "10");
  EXPECT_NE(server_.Watches()[0].find("allowWatchBookmarks=true"), std::string::npos);
  const size_t at = server_.Watches()[0].find("timeoutSeconds=");
  ASSERT_NE(at, std::string::npos);
  const int seconds = std::stoi(server_.Watches()[0].substr(at + 15));
  EXPECT_GE(seconds, 300);
  EXPECT_LE(seconds, 600);
}

TEST_F(ReflectorTest, PagesAreReadToTheEnd) {
  server_.OnList(ListOf(10, {ThingText("a", 1)}, "next page"));
  server_.OnList(ListOf(10, {ThingText("b", 2)}));
  server_.OnWatch(WatchOf({}));
  Start();
  ASSERT_TRUE(LogBecomes("+a1 +b2 "));
  EXPECT_NE(server_.Lists()[1].find("continue=next%20page"), std::string::npos);
  EXPECT_EQ(VersionOf(server_.Lists()[1]), "");
}

TEST_F(ReflectorTest, PagesThatGrewTooOldAreListedAgainInOne) {
  server_.OnList(ListOf(10, {ThingText("a", 1)}, "next"));
  server_.OnList(ErrorAnswer(410, "Expired"));
  server_.OnList(ListOf(12, {ThingText("a", 1), ThingText("b", 11)}));
  server_.OnWatch(WatchOf({}));
  Start();
  ASSERT_TRUE(LogBecomes("+a1 +b11 "));
  EXPECT_EQ(server_.Lists()[2].find("limit"), std::string::npos);
}

TEST_F(ReflectorTest, AnEndInOrderIsWatchedOnFromTheLastEventOrBookmark) {
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("a", 11)), BookmarkLine(20)}, End::kInOrder));
  server_.OnWatch(WatchOf({EventLine("MODIFIED", ThingText("a", 21))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a11 ~a21 "));
  EXPECT_EQ(VersionOf(server_.Watches()[1]), "20");
  EXPECT_EQ(server_.Lists().size(), 1u);
}

TEST_F(ReflectorTest, ACutStreamIsWatchedOnWithoutAList) {
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("a", 11))}, End::kCut));
  server_.OnWatch(WatchOf({EventLine("MODIFIED", ThingText("a", 12))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a11 ~a12 "));
  EXPECT_EQ(VersionOf(server_.Watches()[1]), "11");
  EXPECT_EQ(server_.Lists().size(), 1u);
}

TEST_F(ReflectorTest, HalfALineBeforeTheCutIsNoEvent) {
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf(
      {EventLine("ADDED", ThingText("a", 11)), EventLine("ADDED", ThingText("b", 12)).substr(0, 40)}, End::kCut));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("b", 12))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a11 +b12 ")) << Log();
  EXPECT_EQ(VersionOf(server_.Watches()[1]), "11");
}

TEST_F(ReflectorTest, EventsMayComeInPiecesOfAnySize) {
  server_.OnList(ListOf(10, {}));
  const std::string text = EventLine("ADDED", ThingText("a", 11)) + EventLine("ADDED", ThingText("b", 12));
  std::vector<std::string> pieces;
  for (size_t i = 0; i < text.size(); i += 7) pieces.push_back(text.substr(i, 7));
  server_.OnWatch(WatchOf(pieces));
  Start();
  EXPECT_TRUE(LogBecomes("+a11 +b12 "));
}

TEST_F(ReflectorTest, ALineThatIsNoJsonIsNotTrustedAndTheWatchGoesOn) {
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("a", 11)), "{\"type\": nonsense}\n"}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("b", 12))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a11 +b12 "));
}

TEST_F(ReflectorTest, GoneAsAnEventMeansAListFromTheLastVersionFirst) {
  server_.OnList(ListOf(10, {ThingText("a", 5), ThingText("b", 6)}));
  server_.OnWatch(WatchOf({BookmarkLine(15), ErrorLine(410, "Expired")}));
  server_.OnList(ListOf(30, {ThingText("a", 5), ThingText("c", 25)}));
  server_.OnWatch(WatchOf({}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 +b6 ~a5 +c25 -b6 ")) << Log();
  EXPECT_EQ(VersionOf(server_.Lists()[1]), "15");
}

TEST_F(ReflectorTest, GoneAsAStatusIsTheSame) {
  server_.OnList(ListOf(10, {ThingText("a", 5)}));
  server_.OnWatch(ErrorAnswer(410, "Gone"));
  server_.OnList(ListOf(30, {}));
  server_.OnWatch(WatchOf({}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 -a5 "));
  EXPECT_EQ(VersionOf(server_.Lists()[1]), "10");
  EXPECT_TRUE(WaitUntil([&] { return server_.Watches().size() == 2; }));
  EXPECT_EQ(VersionOf(server_.Watches()[1]), "30");
}

TEST_F(ReflectorTest, AVersionThatTheServerRefusesInAListIsLetGoOnce) {
  server_.OnList(ListOf(10, {ThingText("a", 5)}));
  server_.OnWatch(WatchOf({ErrorLine(410, "Expired")}));
  server_.OnList(
      ErrorAnswer(504, "Timeout", R"({"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large"}]})"));
  server_.OnList(ListOf(8, {ThingText("a", 5)}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("b", 9))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 ~a5 +b9 ")) << Log();
  EXPECT_EQ(VersionOf(server_.Lists()[1]), "10");
  EXPECT_EQ(VersionOf(server_.Lists()[2]), "");
}

// A restored store, or another server behind the same address.
TEST_F(ReflectorTest, AVersionThatGoesBackMeansAFullResync) {
  server_.OnList(ListOf(100, {ThingText("a", 90), ThingText("b", 95)}));
  server_.OnWatch(WatchOf({BookmarkLine(101), BookmarkLine(40)}));
  server_.OnList(ListOf(41, {ThingText("a", 30)}));
  server_.OnWatch(WatchOf({EventLine("MODIFIED", ThingText("a", 42))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a90 +b95 ~a30 -b95 ~a42 ")) << Log();
  EXPECT_EQ(VersionOf(server_.Lists()[1]), "");
  EXPECT_EQ(cache_.resource_version(), "42");
  EXPECT_EQ(metrics_.Value("watch_restarts_total", {{"resource", "things.example.test"}, {"reason", "went back"}}), 1);
}

TEST_F(ReflectorTest, DeletedAndMadeAgainInAGapIsSeenByTheUid) {
  server_.OnList(ListOf(10, {ThingText("a", 5, "first")}));
  server_.OnWatch(WatchOf({ErrorLine(410, "Expired")}));
  server_.OnList(ListOf(30, {ThingText("a", 25, "second")}));
  server_.OnWatch(WatchOf({}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 -a5 +a25 ")) << Log();
}

TEST_F(ReflectorTest, AWatchThatEndsAtOnceWithoutAnEventBacksOff) {
  options_.very_short_watch = milliseconds(20000);
  options_.backoff_base = milliseconds(50);
  options_.backoff_max = milliseconds(50);
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf({}, End::kInOrder));
  Start();
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(WaitUntil([&] { return server_.Watches().size() >= 5; }));
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(4 * 50));
}

TEST_F(ReflectorTest, ASilentWatchIsBegunAgainFromTheLastVersionOnceTheServerSaysThatItIsNotBehindIt) {
  options_.idle_timeout = milliseconds(30);
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf({BookmarkLine(12)}));
  server_.OnList(ListOf(12, {}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("a", 13))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a13 "));
  EXPECT_EQ(VersionOf(server_.Watches()[1]), "12");
  EXPECT_EQ(server_.Lists()[1], "?limit=1");
}

// A restored store: the server says nothing to a watch from a version that it has not reached.
TEST_F(ReflectorTest, ASilentWatchOfAServerThatWentBackMeansAFullResync) {
  options_.idle_timeout = milliseconds(30);
  server_.OnList(ListOf(100, {ThingText("a", 90)}));
  server_.OnWatch(WatchOf({}));
  server_.OnList(ListOf(41, {}));
  server_.OnList(ListOf(42, {ThingText("b", 40)}));
  Start();
  ASSERT_TRUE(LogBecomes("+a90 +b40 -a90 ")) << Log();
}

TEST_F(ReflectorTest, ARefusedWatchIsTriedAgainWithoutAList) {
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(ErrorAnswer(429, "TooManyRequests"));
  server_.OnWatch(ErrorAnswer(429, "TooManyRequests"));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("a", 11))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a11 "));
  EXPECT_EQ(server_.Lists().size(), 1u);
}

// A restored store: the server says nothing to a watch from a version that it has not reached.
TEST_F(ReflectorTest, AServerThatWasAwayIsListedAgainAndMayHaveGoneBack) {
  options_.away_after = milliseconds(0);
  server_.OnList(ListOf(100, {ThingText("a", 90), ThingText("b", 95)}));
  server_.OnWatch(WatchOf({BookmarkLine(101)}, End::kCut));
  server_.OnWatch(ErrorAnswer(503, "ServiceUnavailable"));
  server_.OnList(ListOf(41, {ThingText("a", 30)}));
  server_.OnWatch(WatchOf({EventLine("MODIFIED", ThingText("a", 42))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a90 +b95 ~a30 -b95 ~a42 ")) << Log();
  EXPECT_EQ(VersionOf(server_.Lists()[1]), "") << "a list from 101 could wait for ever";
}

TEST_F(ReflectorTest, ForbiddenNamesTheRuleThatIsMissing) {
  server_.OnList(ErrorAnswer(403, "Forbidden"));
  Start();
  ASSERT_TRUE(WaitUntil([&] { return !reflector_->LastError().ok(); }));
  EXPECT_NE(reflector_->LastError().message().find("apiGroups [\"example.test\"], resources [\"things\"]"),
            std::string::npos)
      << reflector_->LastError().message();
  EXPECT_FALSE(cache_.HasSynced());
}

TEST_F(ReflectorTest, TheErrorIsGoneOnceItWorks) {
  server_.OnList(ErrorAnswer(500, "InternalError"));
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf({}));
  Start();
  ASSERT_TRUE(cache_.WaitForSync(Seconds(20)));
  EXPECT_TRUE(WaitUntil([&] { return reflector_->LastError().ok(); }));
}

TEST_F(ReflectorTest, WatchListFillsTheCacheAtTheBookmarkAndGoesOnInTheSameStream) {
  options_.watch_list = true;
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("b", 7)), EventLine("ADDED", ThingText("a", 5)),
                           BookmarkLine(10, true), EventLine("MODIFIED", ThingText("a", 11))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 +b7 ~a11 ")) << Log();
  EXPECT_EQ(server_.Lists().size(), 0u);
  EXPECT_EQ(server_.Watches().size(), 1u);
  EXPECT_NE(server_.Watches()[0].find("sendInitialEvents=true"), std::string::npos);
  EXPECT_NE(server_.Watches()[0].find("resourceVersionMatch=NotOlderThan"), std::string::npos);
}

TEST_F(ReflectorTest, AStreamedListThatGrowsSilentIsLookedAfterLikeAWatch) {
  options_.watch_list = true;
  options_.idle_timeout = milliseconds(30);
  server_.OnWatch(WatchOf({BookmarkLine(12, true)}));
  server_.OnList(ListOf(11, {}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("a", 5)), BookmarkLine(11, true)}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 ")) << Log();
  EXPECT_NE(server_.Watches()[1].find("sendInitialEvents=true"), std::string::npos) << server_.Watches()[1];
}

TEST_F(ReflectorTest, AServerThatCannotStreamListsIsListedAndNotAskedAgain) {
  options_.watch_list = true;
  server_.OnWatch(ErrorAnswer(422, "Invalid"));
  server_.OnList(ListOf(10, {ThingText("a", 5)}));
  server_.OnWatch(WatchOf({ErrorLine(410, "Expired")}));
  server_.OnList(ListOf(20, {ThingText("a", 5)}));
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("b", 21))}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 ~a5 +b21 ")) << Log();
  int asked = 0;
  for (const std::string& query : server_.Watches())
    asked += query.find("sendInitialEvents") != std::string::npos ? 1 : 0;
  EXPECT_EQ(asked, 1);
}

TEST_F(ReflectorTest, AStreamCutBeforeItsFirstStateIsWholeLeavesTheCacheAsItWas) {
  options_.watch_list = true;
  server_.OnWatch(WatchOf({EventLine("ADDED", ThingText("a", 5))}, End::kCut));
  server_.OnWatch(
      WatchOf({EventLine("ADDED", ThingText("a", 5)), EventLine("ADDED", ThingText("b", 6)), BookmarkLine(9, true)}));
  Start();
  ASSERT_TRUE(LogBecomes("+a5 +b6 ")) << Log();
}

TEST_F(ReflectorTest, CancelEndsItWhereverItIs) {
  server_.OnList(ListOf(10, {}));
  server_.OnWatch(WatchOf({}));
  Start();
  ASSERT_TRUE(WaitUntil([&] { return server_.Watches().size() == 1; }));
  const auto start = std::chrono::steady_clock::now();
  cancel_.Cancel();
  thread_.join();
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

}  // namespace
}  // namespace lockkeeper
