#include "tests/integration/peers/wire_table.h"

#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "api/base/file.h"
#include "tests/unit/types/verdicts.h"

namespace lockkeeper::peers {
namespace {

std::vector<std::string> Texts(const Json& list) {
  std::vector<std::string> out;
  for (const Json& item : list.AsArray()) out.push_back(item.AsString());
  return out;
}

Result<Json> ReadJson(const std::string& file) {
  LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  Result<Json> json = Json::Parse(text);
  if (!json.ok()) return json.status().Annotate("reading " + file);
  return json;
}

WireStep StepOf(const Json& json, const Json& objects) {
  WireStep step;
  step.name = json.Get("name").AsString();
  step.args = Texts(json.Get("args"));
  if (json.Has("input")) {
    Json object = objects.Get(json.Get("input").AsString());
    if (json.Has("change")) MergePatch(object, json.Get("change"));
    step.input = object.Dump();
  }
  if (const Json* exit = json.Find("exit")) {
    step.exit = exit->IsNull() ? std::nullopt : std::optional<int>(static_cast<int>(exit->AsInt()));
  }
  for (const auto& [name, value] : json.Get("env").AsObject()) step.env[name] = value.AsString();
  step.until = json.Get("until").AsString();
  for (const Json& inner : json.Get("during").AsArray()) step.during.push_back(StepOf(inner, objects));
  return step;
}

std::vector<std::string> Split(const std::string& text, char at) {
  std::vector<std::string> parts;
  size_t begin = 0;
  for (size_t end = text.find(at); end != std::string::npos; end = text.find(at, begin)) {
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::string Joined(std::vector<std::string> parts, char with) {
  std::sort(parts.begin(), parts.end());
  std::string out;
  for (const std::string& part : parts) out += (out.empty() ? "" : std::string(1, with)) + part;
  return out;
}

// The length of the uid that begins here, or 0. By hand: std::regex takes minutes over OpenAPI documents.
size_t UidAt(std::string_view text) {
  constexpr std::string_view kShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() < kShape.size()) return 0;
  for (size_t i = 0; i < kShape.size(); ++i) {
    const bool hex = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (kShape[i] == 'x' ? !hex : text[i] != '-') return 0;
  }
  return kShape.size();
}

// What is by chance in any text: uids and hashes of documents.
std::string Plain(std::string_view text) {
  constexpr std::string_view kHash = "hash=";
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (const size_t uid = UidAt(text.substr(i)); uid > 0) {
      out += "<uid>";
      i += uid;
    } else if (text.compare(i, kHash.size(), kHash) == 0) {
      out += "hash=<hash>";
      for (i += kHash.size(); i < text.size() && ::isalnum(static_cast<unsigned char>(text[i])) != 0;) ++i;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// "5m3s", as Tables show times.
bool IsAge(std::string_view text) {
  bool digit = false;
  for (const char c : text) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit && (!digit || std::string_view("dhms").find(c) == std::string_view::npos)) return false;
    digit = is_digit;
  }
  return !text.empty() && !digit;
}

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

class Flattener {
 public:
  explicit Flattener(std::map<std::string, std::string>* facts) : facts_(facts) {}

  void Add(const std::string& path, const std::string& key, const Json& value) {
    if (value.IsObject()) {
      if (value.empty()) (*facts_)[path] = "{}";
      for (const auto& [name, member] : value.AsObject()) Add(path + "." + name, name, member);
    } else if (value.IsArray() && key == "verbs") {
      std::vector<std::string> verbs = Texts(value);
      (*facts_)[path] = Joined(std::move(verbs), ',');  // no order among them
    } else if (value.IsArray()) {
      if (value.empty()) (*facts_)[path] = "[]";
      const char* const name = NameMember(key, value);
      for (size_t i = 0; i < value.size(); ++i) {
        const Json& item = value.AsArray()[i];
        const std::string at = name == nullptr ? std::to_string(i) : NameOf(item, name);
        Add(path + "." + at, key, item);
      }
    } else {
      (*facts_)[path] = value.IsString() ? Text(key, value.AsString()) : value.Dump();
    }
  }

 private:
  static const std::string& NameOf(const Json& item, const std::string& member) {
    return member == "metadata" ? item.At({"metadata", "name"}).AsString() : item.Get(member).AsString();
  }

  // By which member the items of a list are told apart; nullptr: by their place.
  static const char* NameMember(const std::string& key, const Json& list) {
    if (key == "columnDefinitions" || key == "rows") return nullptr;
    for (const char* member : {"metadata", "resource", "subresource", "version", "name", "type"}) {
      std::set<std::string> names;
      for (const Json& item : list.AsArray()) {
        if (item.IsObject()) names.insert(NameOf(item, member));
      }
      if (names.size() == list.size() && !names.contains("")) return member;
    }
    return nullptr;
  }

  static std::string Text(const std::string& key, const std::string& value) {
    static const std::set<std::string> times{"creationTimestamp", "deletionTimestamp", "time"};
    if (key == "resourceVersion" && IsNumber(value) && value != "0") return "<version>";
    if (key == "continue" && !value.empty()) return "<continue>";
    if (times.contains(key)) return "<time>";
    if (key == "cells" && IsAge(value)) return "<age>";
    return Plain(value);
  }

  std::map<std::string, std::string>* facts_;
};

bool Matches(const std::vector<std::string>& patterns, const std::string& text) {
  bool found = false;
  for (const std::string& pattern : patterns) {
    const bool exception = pattern.starts_with("!");
    if (::fnmatch(pattern.c_str() + (exception ? 1 : 0), text.c_str(), 0) != 0) continue;
    if (exception) return false;
    found = true;
  }
  return found;
}

bool IsProtobuf(const Exchange& exchange) {
  return exchange.answer_type.find("application/vnd.kubernetes.protobuf") == 0;
}

void AddBody(const std::string& name, const std::string& text, std::map<std::string, std::string>* facts) {
  if (text.empty()) return;
  if (const Result<Json> json = Json::Parse(text); json.ok()) {
    Flattener(facts).Add(name, name, *json);
  } else {
    (*facts)[name] = Plain(text);
  }
}

}  // namespace

Result<std::vector<WireStep>> LoadSteps(const std::string& file) {
  LK_ASSIGN_OR_RETURN(const Json table, ReadJson(file));
  std::vector<WireStep> steps;
  for (const Json& step : table.Get("steps").AsArray()) steps.push_back(StepOf(step, table.Get("objects")));
  return steps;
}

Result<std::vector<NamedDifference>> LoadDifferences(const std::string& file) {
  LK_ASSIGN_OR_RETURN(const Json table, ReadJson(file));
  std::vector<NamedDifference> out;
  for (const Json& row : table.AsArray()) {
    NamedDifference named;
    named.name = row.Get("name").AsString();
    named.why = row.Get("why").AsString();
    named.steps = Texts(row.Get("steps"));
    named.requests = Texts(row.Get("requests"));
    named.paths = Texts(row.Get("paths"));
    named.only = row.Get("only").AsString();
    if (named.name.empty() || named.why.empty() || named.requests.empty() || named.paths.empty()) {
      return Status(Code::kInvalid, "a difference needs name, why, requests and paths: " + row.Dump());
    }
    out.push_back(std::move(named));
  }
  return out;
}

std::string KeyOf(const Exchange& exchange) {
  const size_t mark = exchange.target.find('?');
  std::string key = exchange.method + " " + exchange.target.substr(0, mark);
  if (mark == std::string::npos) return Plain(key);
  std::vector<std::string> query;
  for (const std::string& part : Split(exchange.target.substr(mark + 1), '&')) {
    const size_t equals = part.find('=');
    const std::string name = part.substr(0, equals);
    std::string value = equals == std::string::npos ? "" : PercentDecode(part.substr(equals + 1));
    if (name == "resourceVersion" && value != "0") value = "<version>";
    if (name == "timeoutSeconds") value = "<seconds>";
    if (name == "continue") value = "<continue>";
    if (name == "fieldSelector") value = Joined(Split(value, ','), ',');
    query.push_back(name + "=" + value);
  }
  return Plain(key + "?" + Joined(std::move(query), '&'));
}

std::map<std::string, std::string> FactsOf(const Exchange& exchange) {
  std::map<std::string, std::string> facts;
  facts["status"] = std::to_string(exchange.status);
  std::string type = exchange.answer_type;
  std::erase(type, ' ');
  facts["type"] = type;
  if (!exchange.error.empty() && exchange.error.find("Cancelled") == std::string::npos) facts["error"] = exchange.error;
  facts["request-accept"] = exchange.accept;
  facts["request-type"] = exchange.content_type;
  AddBody("request", exchange.body, &facts);
  int warnings = 0;
  for (const auto& [name, value] : exchange.headers) {
    if (name == "warning") facts["warning." + std::to_string(warnings++)] = value;
  }
  if (KeyOf(exchange).find("watch=true") == std::string::npos || exchange.status != 200) {
    AddBody("body", exchange.answer, &facts);
    return facts;
  }
  int events = 0;
  for (const std::string& line : Split(exchange.answer, '\n')) {
    if (!line.empty()) AddBody("event." + std::to_string(events++), line, &facts);
  }
  facts["events"] = std::to_string(events);
  return facts;
}

namespace {

std::vector<WireDifference> Differ(const std::string& key, const Exchange& real, const Exchange& embedded) {
  std::vector<WireDifference> out;
  auto facts = FactsOf(real), others = FactsOf(embedded);
  if (IsProtobuf(real) != IsProtobuf(embedded)) {
    // One difference, not one a member.
    for (auto* side : {&facts, &others}) {
      std::erase_if(*side, [](const auto& fact) { return fact.first == "body" || fact.first.starts_with("body."); });
    }
  }
  for (const auto& [path, value] : facts) {
    const auto other = others.find(path);
    if (other == others.end()) out.push_back({key, path, value, std::nullopt});
    if (other != others.end() && other->second != value) out.push_back({key, path, value, other->second});
  }
  for (const auto& [path, value] : others) {
    if (!facts.contains(path)) out.push_back({key, path, std::nullopt, value});
  }
  return out;
}

// Documents come again and again, the same each time.
const std::vector<WireDifference>& DifferOnce(const std::string& key, const Exchange& real, const Exchange& embedded) {
  static auto* const known = new std::map<std::string, std::vector<WireDifference>>;
  std::string pair = key;
  for (const Exchange* e : {&real, &embedded}) {
    for (const std::string* part : {&e->body, &e->answer_type, &e->answer, &e->accept, &e->error}) {
      pair += " " + std::to_string(part->size()) + "." + std::to_string(std::hash<std::string>()(*part));
    }
    pair += " " + std::to_string(e->status) + std::to_string(e->headers.count("warning"));
  }
  const auto [at, fresh] = known->try_emplace(pair);
  if (fresh) at->second = Differ(key, real, embedded);
  return at->second;
}

}  // namespace

std::string WireDifference::ToString() const {
  const auto shown = [](const std::optional<std::string>& value) {
    return value ? value->substr(0, 300) + (value->size() > 300 ? " …" : "") : std::string("(absent)");
  };
  return request + "\n    " + path + "\n      kube-apiserver: " + shown(real) +
         "\n      lockkeeper:     " + shown(embedded);
}

std::vector<WireDifference> Compare(const std::vector<Exchange>& real, const std::vector<Exchange>& embedded) {
  std::map<std::string, std::pair<std::vector<const Exchange*>, std::vector<const Exchange*>>> by_key;
  for (const Exchange& exchange : real) by_key[KeyOf(exchange)].first.push_back(&exchange);
  for (const Exchange& exchange : embedded) by_key[KeyOf(exchange)].second.push_back(&exchange);
  std::vector<WireDifference> out;
  for (const auto& [key, both] : by_key) {
    const size_t pairs = std::min(both.first.size(), both.second.size());
    if (both.first.size() != both.second.size()) {
      out.push_back({key, "sent", std::to_string(both.first.size()), std::to_string(both.second.size())});
    }
    for (size_t i = 0; i < pairs; ++i) {
      const auto& more = DifferOnce(key, *both.first[i], *both.second[i]);
      out.insert(out.end(), more.begin(), more.end());
    }
  }
  return out;
}
std::vector<WireDifference> WithoutNamed(const std::string& step, const std::vector<WireDifference>& differences,
                                         std::vector<NamedDifference>* named) {
  std::vector<WireDifference> out;
  for (const WireDifference& difference : differences) {
    const auto fits = std::find_if(named->begin(), named->end(), [&](const NamedDifference& n) {
      if (!n.steps.empty() && std::find(n.steps.begin(), n.steps.end(), step) == n.steps.end()) return false;
      if (n.only == "real" && difference.embedded) return false;
      if (n.only == "embedded" && difference.real) return false;
      return Matches(n.requests, difference.request) && Matches(n.paths, difference.path);
    });
    if (fits == named->end()) {
      out.push_back(difference);
    } else {
      ++fits->used;
    }
  }
  return out;
}

}  // namespace lockkeeper::peers
