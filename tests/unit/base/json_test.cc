#include "api/base/json.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace lockkeeper {
namespace {

Json Parsed(std::string_view text) {
  Result<Json> json = Json::Parse(text);
  EXPECT_TRUE(json.ok()) << text << ": " << json.status().ToString();
  return json.ok() ? *std::move(json) : Json();
}

TEST(JsonParse, KeepsMembersInTheirOrderAndPrintsThemBack) {
  for (const std::string_view text :
       {R"({"z":1,"a":[true,false,null],"m":{"x":"y"}})", "[]", "{}", "null", "-5", "\"\"", "1.5", R"(["\u0000"])"}) {
    EXPECT_EQ(Parsed(text).Dump(), text);
  }
}

TEST(JsonParse, KeepsIntegersOf64Bits) {
  EXPECT_EQ(Parsed("9223372036854775807").AsInt(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Parsed("-9223372036854775808").AsInt(), std::numeric_limits<int64_t>::min());
  EXPECT_TRUE(Parsed("9007199254740993").IsInt());
  EXPECT_EQ(Parsed("9007199254740993").Dump(), "9007199254740993");
  EXPECT_TRUE(Parsed("9223372036854775808").IsDouble()) << "one more than fits";
  EXPECT_TRUE(Parsed("18446744073709551616").IsDouble());
}

TEST(JsonParse, RefusesWhatIsNotJsonAndSaysWhere) {
  struct Case {
    std::string_view text;
    std::string_view reason;
  };
  for (const Case& c : {Case{"", "offset 0"}, Case{"{", "offset 1"}, Case{"{}x", "offset 2"}, Case{"[1,]", "offset 3"},
                        Case{"{'a':1}", "offset 1"}, Case{"\"\xff\"", "offset"}, Case{"\"\xed\xa0\x80\"", "offset"},
                        Case{"01", "offset 1"}, Case{"NaN", "offset"}, Case{"1e999", "offset"},
                        Case{std::string_view("{}\0[", 4), "offset 2: a NUL"}, Case{"\xef\xbb\xbf{}", "offset 0"}}) {
    const Result<Json> json = Json::Parse(c.text);
    EXPECT_EQ(json.code(), Code::kInvalid) << c.text;
    EXPECT_NE(json.status().message().find(c.reason), std::string::npos) << json.status().ToString();
  }
}

TEST(JsonParse, TakesNestingOf200AndRefusesMore) {
  const auto nested = [](size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); };
  EXPECT_TRUE(Json::Parse(nested(200)).ok());
  const Result<Json> deeper = Json::Parse(nested(201));
  EXPECT_EQ(deeper.status().message(), "not JSON at offset 200: nested deeper than 200");
  EXPECT_FALSE(Json::Parse(std::string(1000000, '[')).ok());
}

TEST(JsonParse, AMemberThatStandsTwiceKeepsItsLastValueAndIsNamed) {
  std::vector<std::string> duplicates;
  const Result<Json> json = Json::Parse(R"({"a":1,"b":[{"c":1},{"c":1,"c":{"d":2,"d":3}}],"a":2})", &duplicates);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(json->Dump(), R"({"a":2,"b":[{"c":1},{"c":{"d":3}}]})");
  EXPECT_EQ(duplicates, (std::vector<std::string>{"b[1].c.d", "b[1].c", "a"}));
}

TEST(JsonPrint, IsJsonWhateverTheBytes) {
  EXPECT_EQ(Json("a\xff\xc3(z").Dump(), "\"a\xef\xbf\xbd\xef\xbf\xbd(z\"");
  EXPECT_EQ(Json("\xed\xa0\x80").Dump(), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"") << "a surrogate";
  EXPECT_EQ(Json("\xf0\x9f\x9a\xa2 \xc3\xa9").Dump(), "\"\xf0\x9f\x9a\xa2 \xc3\xa9\"") << "good UTF-8 is left alone";
  EXPECT_EQ(Json(std::nan("")).Dump(), "null");
  EXPECT_EQ(Json(HUGE_VAL).Dump(), "null");
  EXPECT_EQ(Json("\"\\\n\x01").Dump(), R"("\"\\\n\u0001")");
}

TEST(JsonPrint, CanonicalTextIsTheSameForEqualValues) {
  const Json a = Parsed(R"({"b":{"y":1.0,"x":[2,1]},"a":"t"})");
  const Json b = Parsed(R"({"a":"t","b":{"x":[2,1],"y":1}})");
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.DumpCanonical(), b.DumpCanonical());
  EXPECT_EQ(a.DumpCanonical(), R"({"a":"t","b":{"x":[2,1],"y":1}})");
}

TEST(JsonPrint, PrettyIsIndentedByTwo) {
  EXPECT_EQ(Parsed(R"({"a":[1],"b":{}})").DumpPretty(), "{\n  \"a\": [\n    1\n  ],\n  \"b\": {}\n}");
}

TEST(JsonRead, AnswersTheDefaultForAnotherType) {
  const Json json = Parsed(R"({"s":"text","i":3,"d":2.0,"f":2.5,"t":true,"n":null,"a":[1]})");
  EXPECT_EQ(json.Get("s").AsInt(9), 9);
  EXPECT_EQ(json.Get("i").AsString(), "");
  EXPECT_EQ(json.Get("d").AsInt(9), 2);
  EXPECT_EQ(json.Get("f").AsInt(9), 9);
  EXPECT_DOUBLE_EQ(json.Get("i").AsDouble(), 3);
  EXPECT_FALSE(json.Get("s").AsBool());
  EXPECT_TRUE(json.Get("absent").IsNull());
  EXPECT_TRUE(json.Get("s").AsArray().empty());
  EXPECT_EQ(json.Get("a").size(), 1u);
  EXPECT_EQ(json.Get("s").size(), 0u);
  EXPECT_TRUE(json.Has("n"));
  EXPECT_FALSE(json.Has("absent"));
}

TEST(JsonRead, FollowsAPathAndStopsQuietlyWhereItEnds) {
  const Json json = Parsed(R"({"spec":{"serverRef":{"name":"main"}}})");
  EXPECT_EQ(json.At({"spec", "serverRef", "name"}).AsString(), "main");
  EXPECT_TRUE(json.At({"spec", "serverRef", "name", "deeper"}).IsNull());
  EXPECT_TRUE(json.At({"status", "name"}).IsNull());
}

TEST(JsonChange, MakesObjectsAndArraysOutOfNulls) {
  Json json;
  json["metadata"]["labels"].Set("app", "lockkeeper");
  json["items"].Push(1);
  json["items"].Push("two");
  EXPECT_EQ(json.Dump(), R"({"metadata":{"labels":{"app":"lockkeeper"}},"items":[1,"two"]})");
  EXPECT_TRUE(json.Remove("items"));
  EXPECT_FALSE(json.Remove("items"));
  EXPECT_FALSE(Json("text").Remove("items"));
}

TEST(JsonChange, CopiesAreIndependent) {
  const Json original = Parsed(R"({"a":{"b":1}})");
  Json copy = original;
  copy["a"]["b"] = 2;
  EXPECT_EQ(original.At({"a", "b"}).AsInt(), 1);
}

TEST(JsonEqual, OrderOfMembersDoesNotCountAndOrderOfItemsDoes) {
  EXPECT_EQ(Parsed(R"({"a":1,"b":2})"), Parsed(R"({"b":2,"a":1})"));
  EXPECT_FALSE(Parsed("[1,2]") == Parsed("[2,1]"));
  EXPECT_FALSE(Parsed(R"({"a":1})") == Parsed(R"({"a":1,"b":null})"));
  EXPECT_FALSE(Parsed("1") == Parsed("\"1\""));
  EXPECT_FALSE(Parsed("1") == Parsed("true"));
  EXPECT_FALSE(Parsed("9007199254740993") == Parsed("9007199254740992"));
}

TEST(JsonDeathTest, ChangingATextAsAnArrayIsOurDefect) { EXPECT_DEATH(Json("text").Push(1), "CHECK failed: IsArray"); }

}  // namespace
}  // namespace lockkeeper
