#include "api/server/kcp/durations.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

namespace lockkeeper::kcp {
namespace {

// Seconds of a unit at the start of `text`, which is cut by it; negative for none.
double TakeUnit(std::string_view& text) {
  static constexpr struct {
    std::string_view name;
    double seconds;
  } kUnits[] = {{"ms", 1e-3}, {"us", 1e-6}, {"h", 3600}, {"m", 60}, {"s", 1}};
  for (const auto& unit : kUnits) {
    if (text.substr(0, unit.name.size()) == unit.name) {
      text.remove_prefix(unit.name.size());
      return unit.seconds;
    }
  }
  return -1;
}

}  // namespace

Result<Duration> ParseGoDuration(std::string_view text) {
  const Status bad(Code::kInvalid, "\"" + std::string(text) + "\" is not a duration such as 500ms, 2s or 1m30s");
  if (text == "0") return Duration::zero();
  if (text.empty()) return bad;
  double seconds = 0;
  while (!text.empty()) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    if (error != std::errc() || !(number >= 0)) return bad;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    const double unit = TakeUnit(text);
    if (unit < 0) return bad;
    seconds += number * unit;
  }
  if (seconds > 1e9) return bad;
  return Seconds(seconds);
}

Result<TimeScale> TimeScale::FromEnv() {
  const char* text = std::getenv("LOCKKEEPER_TIME_SCALE");
  if (text == nullptr || *text == '\0') return TimeScale();
  const std::string_view view(text);
  double factor = 0;
  const auto [end, error] = std::from_chars(view.data(), view.data() + view.size(), factor);
  if (error != std::errc() || end != view.data() + view.size() || !(factor >= 0.001) || factor > 10) {
    return Status(Code::kInvalid,
                  "LOCKKEEPER_TIME_SCALE is \"" + std::string(view) + "\"; it must be from 0.001 to 10");
  }
  return TimeScale(factor);
}

Duration TimeScale::Of(double seconds) const {
  if (seconds <= 0) return Duration::zero();
  return std::max(Seconds(seconds * factor_), Milliseconds(1));
}

}  // namespace lockkeeper::kcp
