#include "api/base/log.h"

#include <gtest/gtest.h>

#include <functional>
#include <regex>

#include "api/base/json.h"

namespace lockkeeper {
namespace {

class LogTest : public testing::Test {
 protected:
  ~LogTest() override { ConfigureLog(LogLevel::kInfo, LogFormat::kText); }

  static std::string Captured(const std::function<void()>& body) {
    testing::internal::CaptureStderr();
    body();
    return testing::internal::GetCapturedStderr();
  }
};

TEST_F(LogTest, ALineHasTimeLevelMessageAndFields) {
  const std::string line = Captured([] {
    LogInfo("front flipped", {{"from", "blue"}, {"to", "green"}, {"open", 3}, {"forced", false}, {"seconds", 0.25}});
  });
  EXPECT_TRUE(
      std::regex_match(line, std::regex(R"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z info +front flipped from=blue )"
                                        "to=green open=3 forced=false seconds=0.25\n")))
      << line;
}

TEST_F(LogTest, ValuesAreQuotedWhenTheyNeedItAndOneCallIsOneLine) {
  const std::string line = Captured([] {
    LogWarn("two\nlines", {{"a", "b c"}, {"empty", ""}, {"q", "say \"hi\""}, {"n", "x\ny"}, {"esc", "\x1b[2J"}});
  });
  EXPECT_NE(line.find(R"(two\nlines a="b c" empty="" q="say \"hi\"" n="x\ny" esc="\x1b[2J")"), std::string::npos)
      << line;
  EXPECT_EQ(std::count(line.begin(), line.end(), '\n'), 1);
}

TEST_F(LogTest, LinesBelowTheLevelAreDropped) {
  EXPECT_EQ(Captured([] { LogDebug("hidden"); }), "");
  ConfigureLog(LogLevel::kDebug, LogFormat::kText);
  EXPECT_TRUE(LogEnabled(LogLevel::kDebug));
  EXPECT_NE(Captured([] { LogDebug("shown"); }).find("shown"), std::string::npos);
  ConfigureLog(LogLevel::kOff, LogFormat::kText);
  EXPECT_EQ(Captured([] { LogError("hidden"); }), "");
}

TEST_F(LogTest, AsJsonEachLineIsOneObject) {
  ConfigureLog(LogLevel::kInfo, LogFormat::kJson);
  const std::string text = Captured([] { LogError("no \"quotes\" %s {}", {{"path", "a\\b"}, {"n", 7}}); });
  const Result<Json> json = Json::Parse(text);
  ASSERT_TRUE(json.ok()) << text;
  EXPECT_EQ(json->Get("level").AsString(), "error");
  EXPECT_EQ(json->Get("message").AsString(), "no \"quotes\" %s {}");
  EXPECT_EQ(json->Get("path").AsString(), "a\\b");
  EXPECT_EQ(json->Get("n").AsString(), "7");
  EXPECT_EQ(json->Get("time").AsString().size(), 27u);
}

struct SecretCase {
  const char* text;
  const char* masked;
};

TEST(MaskSecrets, LeavesNoSecretAndAllElse) {
  for (const SecretCase& c : {
           SecretCase{"GET / HTTP/1.1\nAuthorization: Bearer abc.def-123\nHost: x",
                      "GET / HTTP/1.1\nAuthorization: Bearer ***\nHost: x"},
           SecretCase{"bearer   abc", "bearer   ***"},
           SecretCase{"password=hunter2 user=joe", "password=*** user=joe"},
           SecretCase{"--token=abc,def", "--token=***,def"},
           SecretCase{R"({"token":"abc","user":"joe"})", R"({"token":"***","user":"joe"})"},
           SecretCase{"token: 'abc'", "token: '***'"},
           SecretCase{"Token: Bearer abc", "Token: Bearer ***"},
           SecretCase{"client-key-data: LS0tLS1C", "client-key-data: ***"},
           SecretCase{"open postgres://kcp:s3cr:et@db:5432/kine?x=1", "open postgres://kcp:***@db:5432/kine?x=1"},
           SecretCase{"a -----BEGIN EC PRIVATE KEY-----\nMHc\n-----END EC PRIVATE KEY----- b", "a *** b"},
           SecretCase{"-----BEGIN PRIVATE KEY-----\ncut off", "***"},
           SecretCase{"-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----",
                      "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----"},
           SecretCase{"the token is old; tokens: 3; https://host:6443/path@x",
                      "the token is old; tokens: 3; https://host:6443/path@x"},
           SecretCase{"password=", "password="},
           SecretCase{"", ""},
       }) {
    EXPECT_EQ(MaskSecrets(c.text), c.masked);
  }
}

}  // namespace
}  // namespace lockkeeper
