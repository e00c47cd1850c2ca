#include "api/types/build.h"

#include <array>
#include <charconv>
#include <string>
#include <vector>

namespace lockkeeper {

namespace {

bool Known(std::string_view commit) { return !commit.empty() && commit != "unknown"; }

struct Version {
  std::array<uint64_t, 3> numbers{};
  std::vector<std::string_view> pre;
};

bool ParseNumber(std::string_view text, uint64_t* out) {
  if (text.empty()) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

std::vector<std::string_view> Split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

std::optional<Version> ParseVersion(std::string_view text) {
  if (!text.empty() && text.front() == 'v') text.remove_prefix(1);
  text = text.substr(0, text.find('+'));
  Version out;
  if (const size_t dash = text.find('-'); dash != std::string_view::npos) {
    out.pre = Split(text.substr(dash + 1), '.');
    text = text.substr(0, dash);
  }
  const std::vector<std::string_view> parts = Split(text, '.');
  if (parts.size() > 3) return std::nullopt;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (!ParseNumber(parts[i], &out.numbers[i])) return std::nullopt;
  }
  return out;
}

template <typename T>
int Order(const T& a, const T& b) {
  return a < b ? -1 : (b < a ? 1 : 0);
}

// Numbers before words, numbers by value, words by their bytes; a longer list is newer; none is newest.
int OrderPre(const std::vector<std::string_view>& a, const std::vector<std::string_view>& b) {
  if (a.empty() || b.empty()) return Order(a.empty() ? 1 : 0, b.empty() ? 1 : 0);
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    uint64_t x = 0, y = 0;
    const bool x_is_number = ParseNumber(a[i], &x), y_is_number = ParseNumber(b[i], &y);
    int order = 0;
    if (x_is_number && y_is_number) {
      order = Order(x, y);
    } else if (x_is_number != y_is_number) {
      order = x_is_number ? -1 : 1;
    } else {
      order = Order(a[i], b[i]);
    }
    if (order != 0) return order;
  }
  return Order(a.size(), b.size());
}

}  // namespace

bool SameBuild(std::string_view version_a, std::string_view commit_a, std::string_view version_b,
               std::string_view commit_b) {
  if (Known(commit_a) && Known(commit_b)) return commit_a == commit_b;
  return !version_a.empty() && version_a == version_b;
}

bool SameBuild(const BuildRef& a, const BuildRef& b) {
  if (!a.sha256.empty() && !b.sha256.empty()) return a.sha256 == b.sha256;
  return SameBuild(a.version, a.commit, b.version, b.commit);
}

std::optional<int> CompareVersions(std::string_view a, std::string_view b) {
  const std::optional<Version> x = ParseVersion(a), y = ParseVersion(b);
  if (!x || !y) return std::nullopt;
  if (const int order = Order(x->numbers, y->numbers); order != 0) return order;
  return OrderPre(x->pre, y->pre);
}

bool IsDowngrade(std::string_view running, std::string_view wanted) {
  const std::optional<int> order = CompareVersions(wanted, running);
  return order && *order < 0;
}

bool IsMovingTarget(std::string_view version) { return version == "latest" || version == "main"; }

}  // namespace lockkeeper
