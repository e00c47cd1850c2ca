#include "api/types/quantity.h"

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

namespace lockkeeper {

namespace {

bool ParseDigits(std::string_view text, int64_t* out) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *out);
  return error == std::errc() && end == text.data() + text.size();
}

Status Bad(std::string_view what, std::string_view text) {
  return Status(Code::kInvalid,
                "reading the " + std::string(what) + " quantity \"" + std::string(text) + "\": not a quantity");
}

}  // namespace

Result<int64_t> ParseCpuMillis(std::string_view text) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max() / 1000;
  int64_t value = 0;
  if (!text.empty() && text.back() == 'm') {
    if (!ParseDigits(text.substr(0, text.size() - 1), &value)) return Bad("cpu", text);
    return value;
  }
  const size_t dot = text.find('.');
  if (!ParseDigits(text.substr(0, dot), &value) || value >= kMost) return Bad("cpu", text);
  int64_t millis = value * 1000;
  if (dot != std::string_view::npos) {
    std::string fraction(text.substr(dot + 1));
    if (fraction.empty() || fraction.size() > 3) return Bad("cpu", text);
    fraction.resize(3, '0');
    if (!ParseDigits(fraction, &value)) return Bad("cpu", text);
    millis += value;
  }
  return millis;
}

Result<int64_t> ParseByteQuantity(std::string_view text) {
  static constexpr std::array<std::pair<std::string_view, int64_t>, 9> kUnits = {{{"Ki", int64_t{1} << 10},
                                                                                  {"Mi", int64_t{1} << 20},
                                                                                  {"Gi", int64_t{1} << 30},
                                                                                  {"Ti", int64_t{1} << 40},
                                                                                  {"k", 1000},
                                                                                  {"M", 1000000},
                                                                                  {"G", 1000000000},
                                                                                  {"T", 1000000000000},
                                                                                  {"", 1}}};
  for (const auto& [unit, factor] : kUnits) {
    if (!text.ends_with(unit)) continue;
    int64_t value = 0;
    if (!ParseDigits(text.substr(0, text.size() - unit.size()), &value)) return Bad("memory", text);
    if (value > std::numeric_limits<int64_t>::max() / factor) return Bad("memory", text);
    return value * factor;
  }
  return Bad("memory", text);
}

}  // namespace lockkeeper
