// The text formats: YAML, base64, lists, errors.
#include <gtest/gtest.h>

#include "controller/api.h"
#include "controller/base64.h"
#include "controller/list_cutter.h"
#include "controller/yaml.h"

namespace lockkeeper {
namespace {

struct YamlRow {
  const char* name;
  std::string yaml;
  std::string json;  // "" : refused
};
class YamlTable : public ::testing::TestWithParam<YamlRow> {};

TEST_P(YamlTable, ReadsAsKubectlDoes) {
  const auto parsed = ParseYaml(GetParam().yaml, "f.yaml");
  if (GetParam().json.empty()) {
    EXPECT_EQ(parsed.code(), Code::kInvalid);
    EXPECT_EQ(parsed.status().message().substr(0, 6), "f.yaml");
    return;
  }
  ASSERT_TRUE(parsed.ok()) << parsed.status().ToString();
  EXPECT_EQ(parsed->Dump(), GetParam().json);
}

INSTANTIATE_TEST_SUITE_P(
    Table, YamlTable,
    ::testing::Values(
        YamlRow{"plain_scalars_have_types", "{a: 1, b: -2, c: 1.5, d: true, e: null, f: ~, g: text, h: }",
                R"({"a":1,"b":-2,"c":1.5,"d":true,"e":null,"f":null,"g":"text","h":null})"},
        YamlRow{"quoted_scalars_are_strings", R"({a: "1", b: 'true', c: "null", d: ""})",
                R"({"a":"1","b":"true","c":"null","d":""})"},
        YamlRow{"yes_and_no_are_booleans", "{a: yes, b: No, c: on, d: OFF, e: yEs}",
                R"({"a":true,"b":false,"c":true,"d":false,"e":"yEs"})"},
        YamlRow{"octal_and_hex", "{a: 0644, b: 0x1F, c: 0o17, d: 08}", R"({"a":420,"b":31,"c":15,"d":8.0})"},
        YamlRow{"versions_and_times_stay_text", "{a: v1.2.3, b: 1.2.3, c: 2026-01-01T00:00:00Z, d: 10.0.0.1:80}",
                R"({"a":"v1.2.3","b":"1.2.3","c":"2026-01-01T00:00:00Z","d":"10.0.0.1:80"})"},
        YamlRow{"block_text", "a: |\n  x\n  y\n", R"({"a":"x\ny\n"})"},
        YamlRow{"anchors_and_merges", "base: &b {x: 1, y: 2}\nuse:\n  <<: *b\n  y: 3\n",
                R"({"base":{"x":1,"y":2},"use":{"y":3,"x":1}})"},
        YamlRow{"json_is_yaml", R"({"a": [1, {"b": null}]})", R"({"a":[1,{"b":null}]})"},
        YamlRow{"nothing", "# only a comment\n", "null"}, YamlRow{"a_key_twice", "a: 1\na: 2\n", ""},
        YamlRow{"broken", "a: [1, 2\n", ""}, YamlRow{"two_documents_where_one_is_meant", "a: 1\n---\nb: 2\n", ""}),
    [](const auto& row) { return std::string(row.param.name); });

TEST(YamlStream, EmptyDocumentsAreLeftOut) {
  const auto all = ParseYamlStream("---\na: 1\n---\n# nothing\n---\nb: 2\n", "f");
  ASSERT_TRUE(all.ok());
  ASSERT_EQ(all->size(), 2u);
  EXPECT_EQ((*all)[1].Dump(), R"({"b":2})");
}

TEST(YamlLimits, AliasesOfAliasesDoNotFillTheMemory) {
  std::string bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
  for (int i = 1; i < 9; ++i) {
    bomb += "a" + std::to_string(i) + ": &a" + std::to_string(i) + " [";
    for (int j = 0; j < 10; ++j) bomb += (j > 0 ? ", *a" : "*a") + std::to_string(i - 1);
    bomb += "]\n";
  }
  EXPECT_EQ(ParseYaml(bomb, "f").code(), Code::kInvalid);
}

TEST(Base64, RoundTripsEveryLength) {
  std::string data;
  for (int i = 0; i < 300; ++i) {
    EXPECT_EQ(*Base64Decode(Base64Encode(data)), data);
    data += static_cast<char>(i * 7);
  }
  EXPECT_EQ(Base64Encode("any carnal pleas"), "YW55IGNhcm5hbCBwbGVhcw==");
  EXPECT_EQ(*Base64Decode("YW5\n5IGNhcm5hbCBwbGVhcw==\n"), "any carnal pleas");
  for (const char* bad : {"a", "ab=c", "a*cd", "abcd=", "===="}) EXPECT_FALSE(Base64Decode(bad).ok()) << bad;
}

TEST(ListCutter, CutsItemsAndLeavesTheRest) {
  std::vector<std::string> items;
  const auto rest = CutList(R"( {"kind":"List", "metadata":{"resourceVersion":"5","x":["]","\""]},
      "items" : [ {"a":"}\\\"]"} , [1,[2]], "s", 12, true ,null] , "tail" : 1 } )",
                            [&](std::string_view item) {
                              items.emplace_back(item);
                              return Status();
                            });
  ASSERT_TRUE(rest.ok()) << rest.status().ToString();
  EXPECT_EQ(items, (std::vector<std::string>{R"({"a":"}\\\"]"})", "[1,[2]]", "\"s\"", "12", "true", "null"}));
  EXPECT_EQ(rest->At({"metadata", "resourceVersion"}).AsString(), "5");
  EXPECT_EQ(rest->Get("tail").AsInt(), 1);
  EXPECT_FALSE(rest->Has("items"));
}

TEST(ListCutter, RefusesWhatIsBroken) {
  const auto nothing = [](std::string_view) { return Status(); };
  for (const char* bad : {"", "[]", "{", "{\"items\":[", "{\"items\":[{}", "{\"items\":[{}]", "{\"a\"}", "{\"a\":\"x}",
                          "{\"a\":1 \"b\"", "{\"items\":[{\"a\":1]}"}) {
    EXPECT_FALSE(CutList(bad, nothing).ok()) << bad;
  }
  EXPECT_TRUE(CutList("{}", nothing).ok());
  EXPECT_TRUE(CutList("{\"items\":null}", nothing).ok());
}

struct ErrorRow {
  const char* name;
  int http;
  std::string body;
  Code code;
  std::string message;
};
class ErrorTable : public ::testing::TestWithParam<ErrorRow> {};

TEST_P(ErrorTable, MapsReasonsToCodes) {
  const ErrorRow& row = GetParam();
  const auto body = Json::Parse(row.body);
  const Status status = StatusOfAnswer(row.http, body.ok() ? *body : Json(), "get x");
  EXPECT_EQ(status.code(), row.code);
  EXPECT_EQ(status.message(), "get x: " + row.message);
}

INSTANTIATE_TEST_SUITE_P(
    Table, ErrorTable,
    ::testing::Values(
        ErrorRow{"not_found", 404, R"({"message":"servers \"x\" not found","reason":"NotFound"})", Code::kNotFound,
                 "servers \"x\" not found"},
        ErrorRow{"already_exists", 409, R"({"message":"m","reason":"AlreadyExists"})", Code::kAlreadyExists, "m"},
        ErrorRow{"conflict", 409, R"({"message":"m","reason":"Conflict"})", Code::kConflict, "m"},
        ErrorRow{"gone", 410, R"({"message":"m","reason":"Expired"})", Code::kExpired, "m"},
        ErrorRow{
            "invalid_with_causes", 422,
            R"({"message":"m","reason":"Invalid","details":{"causes":[{"reason":"FieldValueInvalid","message":"too small","field":"spec.x"}]}})",
            Code::kInvalid, "m; spec.x: too small"},
        ErrorRow{
            "a_version_from_the_future", 504,
            R"({"message":"Too large resource version: 9, current: 5","reason":"Timeout","details":{"causes":[{"reason":"ResourceVersionTooLarge","message":"Too large resource version"}]}})",
            Code::kExpired, "Too large resource version: 9, current: 5"},
        ErrorRow{"throttled", 429, R"({"message":"m","reason":"TooManyRequests"})", Code::kUnavailable, "m"},
        ErrorRow{"forbidden", 403, R"({"message":"m","reason":"Forbidden"})", Code::kForbidden, "m"},
        ErrorRow{"a_proxy_without_json", 502, "<html>", Code::kUnavailable, "HTTP status 502"},
        ErrorRow{"unauthorized_without_json", 401, "", Code::kUnauthorized, "HTTP status 401"},
        ErrorRow{"server_broken", 500, R"({"message":"m","reason":"InternalError"})", Code::kInternal, "m"}),
    [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace lockkeeper
