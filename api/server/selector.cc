#include "api/server/selector.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <utility>

namespace lockkeeper::apiserver {
namespace {

Status Bad(std::string_view text, const std::string& why) {
  return {Code::kInvalid, "unable to parse selector \"" + std::string(text) + "\": " + why};
}

bool IsNameChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '_' || c == '.'; }

// "name" or "dns.prefix/name": what may stand as a label's key.
bool IsLabelKey(std::string_view key) {
  const size_t slash = key.find('/');
  std::string_view name = slash == std::string_view::npos ? key : key.substr(slash + 1);
  if (slash != std::string_view::npos && (slash == 0 || slash > 253)) return false;
  if (name.empty() || name.size() > 63 || name.find('/') != std::string_view::npos) return false;
  if (std::isalnum(static_cast<unsigned char>(name.front())) == 0 ||
      std::isalnum(static_cast<unsigned char>(name.back())) == 0) {
    return false;
  }
  return std::all_of(name.begin(), name.end(), IsNameChar);
}

bool IsLabelValue(std::string_view value) {
  return value.empty() || (value.size() <= 63 && std::isalnum(static_cast<unsigned char>(value.front())) != 0 &&
                           std::isalnum(static_cast<unsigned char>(value.back())) != 0 &&
                           std::all_of(value.begin(), value.end(), IsNameChar));
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  void SkipSpace() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool End() {
    SkipSpace();
    return at_ >= text_.size();
  }
  bool Take(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  // Up to a character that ends a word.
  std::string Word() {
    SkipSpace();
    const size_t from = at_;
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) == 0 &&
           std::string_view("=!,()<>").find(text_[at_]) == std::string_view::npos) {
      ++at_;
    }
    return std::string(text_.substr(from, at_ - from));
  }

 private:
  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<LabelSelector> LabelSelector::Parse(std::string_view text) {
  LabelSelector selector;
  Reader in(text);
  if (in.End()) return selector;
  while (true) {
    Requirement r;
    const bool negated = in.Take("!");
    r.key = in.Word();
    if (!IsLabelKey(r.key)) return Bad(text, "\"" + r.key + "\" is no label key");
    if (negated) {
      r.op = Op::kNotExists;
    } else if (in.Take("==") || in.Take("=")) {
      r.values = {in.Word()};
    } else if (in.Take("!=")) {
      r.op = Op::kNotIn;
      r.values = {in.Word()};
    } else if (in.Take(">") || in.Take("<")) {
      return Bad(text, "> and < are not served");
    } else {
      Reader ahead = in;
      const std::string word = ahead.Word();
      if (word == "in" || word == "notin") {
        r.op = word == "in" ? Op::kIn : Op::kNotIn;
        in = ahead;
        if (!in.Take("(")) return Bad(text, "\"" + word + "\" needs a list in parentheses");
        do {
          r.values.push_back(in.Word());
        } while (in.Take(","));
        if (!in.Take(")")) return Bad(text, "a list is not closed");
      } else if (word.empty()) {
        r.op = Op::kExists;
      } else {
        return Bad(text, "found \"" + word + "\", expected in, notin, =, ==, != or a comma");
      }
    }
    for (const std::string& value : r.values) {
      if (!IsLabelValue(value)) return Bad(text, "\"" + value + "\" is no label value");
    }
    selector.requirements_.push_back(std::move(r));
    if (in.End()) return selector;
    if (!in.Take(",")) return Bad(text, "expected a comma");
  }
}

bool LabelSelector::Matches(const Json& labels) const {
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    const Json* label = labels.Find(r.key);
    const bool listed =
        label != nullptr && std::find(r.values.begin(), r.values.end(), label->AsString()) != r.values.end();
    switch (r.op) {
      case Op::kIn: return listed;
      case Op::kNotIn: return !listed;
      case Op::kExists: return label != nullptr;
      case Op::kNotExists: return label == nullptr;
    }
    return false;
  });
}

namespace {

bool Starts(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool IsOneOf(std::string_view text, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

// The path that a field label stands for; empty: not supported.
std::vector<std::string> FieldPath(std::string_view label, const KindInfo& kind) {
  auto split = [](std::string_view text) {
    std::vector<std::string> parts;
    while (true) {
      const size_t dot = text.find('.');
      parts.emplace_back(text.substr(0, dot));
      if (dot == std::string_view::npos) return parts;
      text.remove_prefix(dot + 1);
    }
  };
  if (label == "metadata.name" || label == "metadata.namespace") return split(label);
  if (kind.kind == "Event") {
    const std::string_view subject = kind.group.empty() ? "involvedObject." : "regarding.";
    if (Starts(label, subject) &&
        IsOneOf(label.substr(subject.size()),
                {"kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath"})) {
      return split(label);
    }
    if (IsOneOf(label, {"reason", "type"})) return split(label);
    if (label == "source") return split(kind.group.empty() ? "source.component" : "deprecatedSource.component");
    if (label == "reportingComponent" && kind.group.empty()) return split(label);
    if (label == "reportingController" && !kind.group.empty()) return split(label);
  }
  if (kind.kind == "Secret" && label == "type") return split(label);
  if (kind.kind == "Namespace" && label == "status.phase") return split(label);
  return {};
}

}  // namespace

Result<FieldSelector> FieldSelector::Parse(std::string_view text, const KindInfo& kind) {
  FieldSelector selector;
  size_t at = 0;
  while (at < text.size()) {
    // A value may hold escaped \, \= and \\.
    std::string term;
    std::string label;
    int seen = 0;  // 1: =, 2: !=
    for (; at < text.size() && text[at] != ','; ++at) {
      const char c = text[at];
      if (c == '\\' && at + 1 < text.size()) {
        term += text[++at];
      } else if (seen == 0 && c == '!' && at + 1 < text.size() && text[at + 1] == '=') {
        seen = 2;
        ++at;
        label = std::exchange(term, "");
      } else if (seen == 0 && c == '=') {
        seen = 1;
        if (at + 1 < text.size() && text[at + 1] == '=') ++at;
        label = std::exchange(term, "");
      } else {
        term += c;
      }
    }
    if (at < text.size()) ++at;
    if (seen == 0 && term.empty()) continue;
    if (seen == 0)
      return Status(Code::kInvalid,
                    "invalid field selector: '" + std::string(text) + "'; can't understand '" + term + "'");
    Requirement r;
    r.path = FieldPath(label, kind);
    if (r.path.empty()) return Status(Code::kInvalid, "field label not supported: " + label);
    r.equals = seen == 1;
    r.value = std::move(term);
    if (r.equals && label == "metadata.name") selector.name_ = r.value;
    if (r.equals && label == "metadata.namespace") selector.ns_ = r.value;
    selector.requirements_.push_back(std::move(r));
  }
  return selector;
}

bool FieldSelector::Matches(const Json& object) const {
  return std::all_of(requirements_.begin(), requirements_.end(), [&](const Requirement& r) {
    const Json* at = &object;
    for (const std::string& part : r.path) {
      if (at != nullptr) at = at->Find(part);
    }
    const std::string value = at == nullptr ? "" : at->AsString();
    return (value == r.value) == r.equals;
  });
}

}  // namespace lockkeeper::apiserver
