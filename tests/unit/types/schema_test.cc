// The emitted schema: structural, within CEL's budget, and the generated files current.
#include <gtest/gtest.h>

#include <set>

#include "api/types/generate.h"
#include "api/types/kind.h"
#include "api/types/reasons.h"
#include "api/types/type_info.h"
#include "api/types/yaml.h"
#include "tests/unit/types/from_yaml.h"
#include "tests/unit/types/random_object.h"

namespace lockkeeper {
namespace {

// What kube-apiserver refuses in a structural schema (crd-idioms 2.1), and what would make a rule too dear below a
// list.
void CheckSchema(const Json& schema, const std::string& path, bool below_list) {
  const std::string& type = schema.Get("type").AsString();
  EXPECT_NE(type, "") << path;
  for (const auto& [key, value] : schema.AsObject()) {
    static const std::set<std::string> known = {"type",
                                                "description",
                                                "properties",
                                                "additionalProperties",
                                                "items",
                                                "required",
                                                "enum",
                                                "default",
                                                "format",
                                                "pattern",
                                                "minimum",
                                                "maximum",
                                                "minLength",
                                                "maxLength",
                                                "minItems",
                                                "maxItems",
                                                "maxProperties",
                                                "x-kubernetes-validations",
                                                "x-kubernetes-list-type",
                                                "x-kubernetes-list-map-keys"};
    EXPECT_TRUE(known.contains(key)) << path << " has " << key;
  }
  if (type == "integer") {
    EXPECT_TRUE(schema.Has("maximum") && schema.Has("minimum")) << path << " is an integer without bounds";
  }
  if (type == "array") {
    EXPECT_TRUE(schema.Has("items")) << path;
    EXPECT_TRUE(schema.Has("maxItems")) << path << " is a list without maxItems";
    CheckSchema(schema.Get("items"), path + "[]", true);
    if (schema.Get("x-kubernetes-list-type").AsString() == "map") {
      for (const Json& key : schema.Get("x-kubernetes-list-map-keys").AsArray()) {
        bool required = false;
        for (const Json& name : schema.Get("items").Get("required").AsArray()) required = required || name == key;
        EXPECT_TRUE(required) << path << ": the key " << key.AsString() << " is not required";
      }
    }
  }
  if (type == "string" && below_list && !schema.Has("enum") && schema.Get("format").AsString() != "date-time") {
    EXPECT_TRUE(schema.Has("maxLength")) << path << " is text below a list without maxLength";
  }
  EXPECT_FALSE(schema.Has("properties") && schema.Has("additionalProperties")) << path;
  if (schema.Has("additionalProperties")) {
    EXPECT_TRUE(schema.Has("maxProperties")) << path << " is a map without maxProperties";
    CheckSchema(schema.Get("additionalProperties"), path + "{}", true);
  }
  for (const auto& [name, property] : schema.Get("properties").AsObject()) {
    if (path.empty() && (name == "metadata" || name == "apiVersion" || name == "kind")) continue;
    EXPECT_NE(property.Get("description").AsString(), "") << path << "." << name << " has no description";
    CheckSchema(property, path + "." + name, below_list);
  }
  for (const Json& rule : schema.Get("x-kubernetes-validations").AsArray()) {
    const std::string& cel = rule.Get("rule").AsString();
    // Words that kube-apiserver 1.26 does not know (crd-idioms 2.8).
    for (const char* word : {"isQuantity", "format(", "self.?", "optional", "quantity("}) {
      EXPECT_EQ(cel.find(word), std::string::npos) << path << ": " << cel;
    }
    EXPECT_EQ(rule.size(), 2u) << "only rule and message exist in 1.26";
    EXPECT_TRUE(!below_list || cel.find("oldSelf") == std::string::npos) << path << ": " << cel;
  }
}

TEST(Schema, IsStructuralAndBounded) {
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    const Json schema = SchemaOf(kind);
    CheckSchema(schema, "", false);
    EXPECT_EQ(schema.Get("required").Dump(), R"(["spec"])") << "a removed spec would escape every rule on it";
    EXPECT_EQ(schema.At({"properties", "metadata"}).Dump(), R"({"type":"object"})");
    const Json& status = schema.At({"properties", "status"});
    EXPECT_EQ(status.Get("default").Dump(), R"({"observedGeneration":-1})") << kind.kind;
    EXPECT_EQ(status.At({"properties", "observedGeneration", "default"}).Dump(), "-1") << kind.kind;
    EXPECT_EQ(status.At({"properties", "conditions", "x-kubernetes-list-type"}).AsString(), "map") << kind.kind;
  }
}

TEST(Schema, EveryDefaultIsGoodByItsOwnSchema) {
  // A server refuses a CRD whose default breaks a bound or a rule.
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    Json object = Json::MakeObject({{"metadata", Json::MakeObject({{"name", "n"}})}, {"spec", Json::MakeObject()}});
    ApplyDefaults(kind, object);
    for (const FieldError& error : Validate(kind, object, nullptr, false)) {
      EXPECT_TRUE(error.reason == FieldReason::kRequired || error.field == "<nil>")
          << kind.kind << " " << error.ToString();
    }
  }
}

TEST(Schema, ColumnsHavePathsThatKubectlReads) {
  for (const KindInfo& kind : Kinds()) {
    std::set<std::string> names;
    for (const PrinterColumn& column : kind.columns) {
      EXPECT_TRUE(names.insert(column.name).second) << kind.kind << " " << column.name;
      EXPECT_NE(column.description, "") << kind.kind << " " << column.name;
      EXPECT_TRUE(std::set<std::string>({"string", "integer", "number", "boolean", "date"}).contains(column.type));
      if (column.cell != nullptr) continue;
      EXPECT_EQ(column.json_path.front(), '.') << kind.kind << " " << column.name;
      // A path that does not parse drops its column and all later ones without a word (crd-idioms 4.3).
      for (const char* bad : {"&&", "=~", "{", "$"}) EXPECT_EQ(column.json_path.find(bad), std::string::npos);
    }
    EXPECT_TRUE(kind.ours ? kind.categories == std::vector<std::string>{"lockkeeper"} : true);
  }
}

TEST(Schema, ColumnsNameFieldsThatExist) {
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    for (const PrinterColumn& column : kind.columns) {
      if (column.json_path.starts_with(".metadata.") || column.json_path.find("?(") != std::string::npos) continue;
      const TypeInfo* type = kind.type;
      std::string rest = column.json_path.substr(1);
      while (!rest.empty()) {
        const size_t dot = rest.find('.');
        std::string name = rest.substr(0, dot);
        rest = dot == std::string::npos ? "" : rest.substr(dot + 1);
        if (const size_t bracket = name.find('['); bracket != std::string::npos) name.resize(bracket);
        const FieldInfo* field = type->Find(name);
        ASSERT_NE(field, nullptr) << kind.kind << " " << column.json_path;
        type = field->value.items ? field->value.items->type : field->value.type;
        ASSERT_TRUE(rest.empty() || type != nullptr) << kind.kind << " " << column.json_path;
      }
    }
  }
}

TEST(Generated, FilesInTheTreeAreCurrent) {
  const std::vector<std::string> stale = StaleFiles(LK_SOURCE_DIR);
  EXPECT_EQ(stale, std::vector<std::string>{}) << "run make generate";
}

TEST(Generated, EveryReasonAndConditionTypeStandsInTheReference) {
  std::string index;
  for (const GeneratedFile& file : GeneratedFiles()) {
    if (file.path == "docs/reference/api.md") index = file.content;
  }
  for (const ReasonInfo& reason : Reasons()) {
    EXPECT_NE(index.find("| " + std::string(reason.name) + " |"), std::string::npos) << reason.name;
  }
}

TEST(Yaml, ReadsBackAsItWas) {
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    const Json crd = CrdOf(kind);
    EXPECT_EQ(FromYaml(ToYaml(crd)).front(), crd) << kind.kind;
  }
  const uint64_t seed = TestSeed();
  RandomObject random(seed);
  for (const KindInfo& kind : Kinds()) {
    if (!kind.ours) continue;
    const Json object = random.Make(*kind.type);
    EXPECT_EQ(FromYaml(ToYaml(object)).front(), object) << "seed " << seed << "\n" << ToYaml(object);
  }
}

TEST(Yaml, QuotesWhatAReaderWouldTakeForSomethingElse) {
  for (const char* text : {"yes", "No", "null", "~",  "5",  "1.5", "+1",   "2026-11-30", "0x1f", "a: b", "a #b", "- a",
                           "*a",  "&a", "!a",   "",   " a", "a ",  "a\nb", "\ttab",      "it's", "'",    "\"",   "{}",
                           "[a]", "a:", "%",    "@a", "`a", "|",   ">",    "?",          "=",    "<<"}) {
    const Json value = Json::MakeObject({{"k", text}});
    EXPECT_EQ(FromYaml(ToYaml(value)).front(), value) << ToYaml(value);
  }
  EXPECT_EQ(ToYaml(*Json::Parse(R"({"a": {}, "b": [], "c": [{"d": 1, "e": [true]}, "f"]})")),
            "a: {}\nb: []\nc:\n- d: 1\n  e:\n  - true\n- f\n");
}

}  // namespace
}  // namespace lockkeeper
