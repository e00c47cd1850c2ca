#include "tests/unit/types/from_yaml.h"

#include <gtest/gtest.h>
#include <yaml-cpp/yaml.h>

namespace lockkeeper {

namespace {

Json Convert(const YAML::Node& node) {
  if (node.IsMap()) {
    Json out = Json::MakeObject();
    for (const auto& member : node) out.Set(member.first.as<std::string>(), Convert(member.second));
    return out;
  }
  if (node.IsSequence()) {
    Json out = Json::MakeArray();
    for (const auto& item : node) out.Push(Convert(item));
    return out;
  }
  if (node.IsNull()) return Json();
  const auto text = node.as<std::string>();
  if (node.Tag() == "!") return Json(text);  // quoted
  Result<Json> plain = Json::Parse(text);
  return plain.ok() && !plain->IsObject() && !plain->IsArray() ? *plain : Json(text);
}

}  // namespace

std::vector<Json> FromYaml(const std::string& text) {
  std::vector<Json> out;
  try {
    for (const YAML::Node& document : YAML::LoadAll(text)) out.push_back(Convert(document));
  } catch (const YAML::Exception& e) {
    ADD_FAILURE() << "reading YAML: " << e.what() << "\n" << text;
  }
  if (out.empty()) out.emplace_back();
  return out;
}

}  // namespace lockkeeper
