#include "api/server/json_path.h"

#include <cctype>
#include <cstdlib>
#include <utility>

namespace lockkeeper::apiserver {

class JsonPath::Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  Result<std::vector<Step>> Path(bool inside_filter) {
    std::vector<Step> steps;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '.') {
        const bool descend = text_.substr(at_, 2) == "..";
        at_ += descend ? 2 : 1;
        if (at_ < text_.size() && text_[at_] == '[' && !descend) continue;
        Step step;
        if (at_ < text_.size() && text_[at_] == '*') {
          ++at_;
          step.kind = Step::Kind::kAll;
        } else {
          step.kind = descend ? Step::Kind::kDescend : Step::Kind::kMember;
          step.name = Name(inside_filter);
          if (step.name.empty()) return Bad("a name is missing");
        }
        steps.push_back(std::move(step));
      } else if (c == '[') {
        LK_ASSIGN_OR_RETURN(Step step, Bracket());
        steps.push_back(std::move(step));
      } else if (inside_filter) {
        break;
      } else {
        return Bad(std::string("unexpected '") + c + "'");
      }
    }
    return steps;
  }

 private:
  Status Bad(const std::string& why) const {
    return {Code::kInvalid, "JSON path " + std::string(text_) + ", offset " + std::to_string(at_) + ": " + why};
  }

  // `\.` is a dot of the name.
  std::string Name(bool inside_filter) {
    std::string name;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '\\' && at_ + 1 < text_.size()) {
        name += text_[++at_];
        ++at_;
        continue;
      }
      if (c == '.' || c == '[' || c == ']') break;
      if (inside_filter && (std::isspace(static_cast<unsigned char>(c)) != 0 ||
                            std::string_view("=!<>)&|").find(c) != std::string_view::npos))
        break;
      name += c;
      ++at_;
    }
    return name;
  }

  void SkipSpace() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }

  bool Take(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }

  Result<std::string> QuotedText() {
    const char quote = text_[at_++];
    std::string value;
    while (at_ < text_.size() && text_[at_] != quote) {
      if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
      value += text_[at_++];
    }
    if (at_ >= text_.size()) return Bad("a quote is not closed");
    ++at_;
    return value;
  }

  Result<Step> Bracket() {
    ++at_;  // [
    Step step;
    SkipSpace();
    if (at_ >= text_.size()) return Bad("a bracket is not closed");
    const char c = text_[at_];
    if (c == '*') {
      ++at_;
      step.kind = Step::Kind::kAll;
    } else if (c == '\'' || c == '"') {
      LK_ASSIGN_OR_RETURN(step.name, QuotedText());
    } else if (c == '?') {
      ++at_;
      LK_RETURN_IF_ERROR(Filter(step));
    } else if (c == '-' || std::isdigit(static_cast<unsigned char>(c)) != 0) {
      step.kind = Step::Kind::kIndex;
      char* end = nullptr;
      const std::string rest(text_.substr(at_));
      step.index = std::strtol(rest.c_str(), &end, 10);
      if (end == rest.c_str()) return Bad("an index is no number");
      at_ += static_cast<size_t>(end - rest.c_str());
    } else {
      return Bad("a bracket holds neither an index, a name nor a filter");
    }
    if (!Take("]")) return Bad("a bracket is not closed");
    return step;
  }

  Status Filter(Step& step) {
    step.kind = Step::Kind::kFilter;
    if (!Take("(") || !Take("@")) return Bad("a filter begins with (@");
    LK_ASSIGN_OR_RETURN(step.left, Path(true));
    for (const std::string_view op : {"==", "!=", "<=", ">=", "<", ">"}) {
      if (Take(op)) {
        step.op = op;
        break;
      }
    }
    if (!step.op.empty()) {
      SkipSpace();
      if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
        LK_ASSIGN_OR_RETURN(std::string text, QuotedText());
        step.right = Json(std::move(text));
      } else {
        std::string word;
        while (at_ < text_.size() && text_[at_] != ')' && text_[at_] != ' ') word += text_[at_++];
        Result<Json> value = Json::Parse(word);
        // A bare word is no value: such a filter matches nothing (crd-idioms 4.2).
        step.right = value.ok() ? std::move(*value) : Json::MakeArray();
      }
    }
    if (!Take(")")) return Bad("a filter is not closed, or uses an operator that is not known");
    return Status::Ok();
  }

  std::string_view text_;
  size_t at_ = 0;
};

Result<JsonPath> JsonPath::Parse(std::string_view text) {
  if (text.empty() || (text[0] != '.' && text[0] != '[')) {
    return Status(Code::kInvalid, "JSON path " + std::string(text) + " does not begin with a dot");
  }
  JsonPath path;
  Parser parser(text);
  LK_ASSIGN_OR_RETURN(path.steps_, parser.Path(false));
  return path;
}

std::vector<const Json*> JsonPath::Find(const Json& object) const {
  std::vector<const Json*> out;
  Apply(steps_, 0, object, out);
  return out;
}

bool JsonPath::Holds(const Step& filter, const Json& item) {
  std::vector<const Json*> found;
  Apply(filter.left, 0, item, found);
  if (filter.op.empty()) return !found.empty();
  if (found.empty()) return false;
  const Json& left = *found.front();
  if (filter.op == "==") return left == filter.right;
  if (filter.op == "!=") return !(left == filter.right);
  double order = 0;
  if (left.IsNumber() && filter.right.IsNumber()) {
    order = left.AsDouble() - filter.right.AsDouble();
  } else if (left.IsString() && filter.right.IsString()) {
    order = left.AsString().compare(filter.right.AsString());
  } else {
    return false;
  }
  if (filter.op == "<") return order < 0;
  if (filter.op == "<=") return order <= 0;
  if (filter.op == ">") return order > 0;
  return order >= 0;
}

void JsonPath::Apply(const std::vector<Step>& steps, size_t at, const Json& value, std::vector<const Json*>& out) {
  if (at == steps.size()) {
    out.push_back(&value);
    return;
  }
  const Step& step = steps[at];
  switch (step.kind) {
    case Step::Kind::kMember:
      if (const Json* member = value.Find(step.name)) Apply(steps, at + 1, *member, out);
      return;
    case Step::Kind::kIndex: {
      const auto size = static_cast<int64_t>(value.AsArray().size());
      const int64_t index = step.index < 0 ? size + step.index : step.index;
      if (index >= 0 && index < size) Apply(steps, at + 1, value.AsArray()[static_cast<size_t>(index)], out);
      return;
    }
    case Step::Kind::kAll:
      for (const Json& item : value.AsArray()) Apply(steps, at + 1, item, out);
      for (const Json::Member& member : value.AsObject()) Apply(steps, at + 1, member.second, out);
      return;
    case Step::Kind::kDescend:
      if (const Json* member = value.Find(step.name)) Apply(steps, at + 1, *member, out);
      for (const Json& item : value.AsArray()) Apply(steps, at, item, out);
      for (const Json::Member& member : value.AsObject()) Apply(steps, at, member.second, out);
      return;
    case Step::Kind::kFilter:
      for (const Json& item : value.AsArray()) {
        if (Holds(step, item)) Apply(steps, at + 1, item, out);
      }
      return;
  }
}

}  // namespace lockkeeper::apiserver
