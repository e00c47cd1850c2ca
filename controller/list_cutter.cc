#include "controller/list_cutter.h"

namespace lockkeeper {

namespace {

class Cutter {
 public:
  explicit Cutter(std::string_view text) : text_(text) {}

  Result<Json> Run(const std::function<Status(std::string_view)>& on_item) {
    SkipSpace();
    if (!Take('{')) return Broken();
    std::string rest = "{";
    SkipSpace();
    while (!Take('}')) {
      const size_t start = at_;
      if (!SkipString()) return Broken();
      const std::string_view key = text_.substr(start + 1, at_ - start - 2);
      SkipSpace();
      if (!Take(':')) return Broken();
      SkipSpace();
      if (key == "items" && at_ < text_.size() && text_[at_] == '[') {
        LK_RETURN_IF_ERROR(Items(on_item));
      } else {
        if (!SkipValue()) return Broken();
        if (rest.size() > 1) rest += ',';
        rest.append(text_.substr(start, at_ - start));
      }
      SkipSpace();
      if (Take(',')) SkipSpace();
      if (at_ >= text_.size()) return Broken();
    }
    return Json::Parse(rest + "}");
  }

 private:
  Status Items(const std::function<Status(std::string_view)>& on_item) {
    ++at_;
    SkipSpace();
    while (!Take(']')) {
      const size_t start = at_;
      if (!SkipValue()) return Broken();
      LK_RETURN_IF_ERROR(on_item(text_.substr(start, at_ - start)));
      SkipSpace();
      if (Take(',')) SkipSpace();
      if (at_ >= text_.size()) return Broken();
    }
    return {};
  }

  // Over one value by its brackets and quotes; whether it is valid is for the parser of the item.
  bool SkipValue() {
    int depth = 0;
    const size_t start = at_;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '"') {
        if (!SkipString()) return false;
        if (depth == 0) return true;
        continue;
      }
      if (c == '{' || c == '[') {
        ++depth;
      } else if (c == '}' || c == ']') {
        if (depth == 0) return at_ > start;
        if (--depth == 0) {
          ++at_;
          return true;
        }
      } else if (depth == 0 && (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t')) {
        return at_ > start;
      }
      ++at_;
    }
    return false;
  }

  bool SkipString() {
    if (!Take('"')) return false;
    while (at_ < text_.size()) {
      const size_t next = text_.find_first_of("\"\\", at_);
      if (next == std::string_view::npos) return false;
      at_ = next + (text_[next] == '\\' ? 2 : 1);
      if (text_[next] == '"') return true;
    }
    return false;
  }

  void SkipSpace() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Status Broken() const { return {Code::kInvalid, "the list is broken JSON at byte " + std::to_string(at_)}; }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Result<Json> CutList(std::string_view text, const std::function<Status(std::string_view)>& on_item) {
  return Cutter(text).Run(on_item);
}

}  // namespace lockkeeper
