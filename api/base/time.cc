#include "api/base/time.h"

#include <time.h>

#include <cstdio>
#include <fstream>

namespace lockkeeper {
namespace {

class RealClock : public Clock {
 public:
  Now Read() const override {
    timespec ts{};
    clock_gettime(CLOCK_BOOTTIME, &ts);
    return {std::chrono::time_point_cast<Duration>(std::chrono::system_clock::now()),
            Duration(int64_t{ts.tv_sec} * 1000000 + ts.tv_nsec / 1000), BootId()};
  }
};

}  // namespace

Duration Deadline::Left(const Now& now) const { return boot_id == now.boot_id ? boot - now.boot : wall - now.wall; }

const Clock& SystemClock() {
  static const RealClock clock;
  return clock;
}

const std::string& BootId() {
  static const std::string id = [] {
    std::string text;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> text;
    return text;
  }();
  return id;
}

namespace {
std::string Format(Time t, bool micros) {
  const auto us = t.time_since_epoch().count();
  auto secs = us / 1000000;
  auto rest = us % 1000000;
  if (rest < 0) rest += 1000000, secs -= 1;
  const time_t tt = secs;
  tm parts{};
  gmtime_r(&tt, &parts);
  char buf[96];
  // Not strftime: its %Y does not pad.
  std::snprintf(buf, sizeof buf, "%04d-%02d-%02dT%02d:%02d:%02d", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                parts.tm_hour, parts.tm_min, parts.tm_sec);
  std::string out(buf);
  if (micros) {
    std::snprintf(buf, sizeof buf, ".%06lld", static_cast<long long>(rest));
    out += buf;
  }
  return out + "Z";
}
}  // namespace

std::string FormatTime(Time t) { return Format(t, false); }
std::string FormatMicroTime(Time t) { return Format(t, true); }

namespace {

// Reads a text of fixed fields from the left.
class Fields {
 public:
  explicit Fields(std::string_view text) : text_(text) {}
  bool ok() const { return ok_; }
  bool AtEnd() const { return text_.empty(); }

  // The next character, when it is one of `allowed`; else not ok.
  char Take(std::string_view allowed) {
    if (text_.empty() || allowed.find(text_.front()) == std::string_view::npos) return ok_ = false, '\0';
    const char c = text_.front();
    text_.remove_prefix(1);
    return c;
  }
  bool Next(char c) const { return !text_.empty() && text_.front() == c; }
  bool NextIsDigit() const { return !text_.empty() && text_.front() >= '0' && text_.front() <= '9'; }
  // A number of exactly `digits` digits from `least` to `most`.
  int Number(int digits, int least, int most) {
    int value = 0;
    for (int i = 0; i < digits && ok_; ++i) value = value * 10 + (Take("0123456789") - '0');
    if (value < least || value > most) ok_ = false;
    return value;
  }

 private:
  std::string_view text_;
  bool ok_ = true;
};

}  // namespace

// By hand: strptime takes blanks, short years and the 31st of February.
Result<Time> ParseTime(std::string_view text) {
  Fields in(text);
  const std::chrono::year year(in.Number(4, 0, 9999));
  in.Take("-");
  const std::chrono::month month(static_cast<unsigned>(in.Number(2, 1, 12)));
  in.Take("-");
  const std::chrono::year_month_day date(year, month, std::chrono::day(static_cast<unsigned>(in.Number(2, 1, 31))));
  in.Take("T");
  int seconds = in.Number(2, 0, 23) * 3600;
  in.Take(":");
  seconds += in.Number(2, 0, 59) * 60;
  in.Take(":");
  seconds += in.Number(2, 0, 60);  // 60: a leap second
  int64_t micros = 0;
  if (in.Next('.')) {
    in.Take(".");
    int64_t unit = 100000;
    do {  // digits past the sixth are dropped
      micros += in.Number(1, 0, 9) * unit;
      unit /= 10;
    } while (in.ok() && in.NextIsDigit());
  }
  const char zone = in.Take("Zz+-");
  if (zone == '+' || zone == '-') {
    int offset = in.Number(2, 0, 23) * 3600;
    in.Take(":");
    offset += in.Number(2, 0, 59) * 60;
    seconds -= zone == '+' ? offset : -offset;
  }
  if (!in.ok() || !in.AtEnd() || !date.ok()) {
    return Status(Code::kInvalid, "\"" + std::string(text) + "\" is not an RFC 3339 time");
  }
  return Time(std::chrono::sys_days(date) + std::chrono::seconds(seconds) + Duration(micros));
}

std::string FormatAge(Duration d) {
  const int64_t ms = d.count() / 1000;
  if (ms <= -2000) return "<invalid>";
  if (ms < 0) return "0s";  // clocks of two machines are never quite the same
  const int64_t s = ms / 1000, m = s / 60, h = m / 60, days = h / 24;
  const auto two = [](int64_t a, const char* ua, int64_t b, const char* ub) {
    return std::to_string(a) + ua + (b > 0 ? std::to_string(b) + ub : "");
  };
  if (s == 0 && ms > 0) return std::to_string(ms) + "ms";
  if (s < 120) return std::to_string(s) + "s";
  if (m < 10) return two(m, "m", s % 60, "s");
  if (h < 3) return std::to_string(m) + "m";
  if (h < 8) return two(h, "h", m % 60, "m");
  if (h < 48) return std::to_string(h) + "h";
  if (days < 8) return two(days, "d", h % 24, "h");
  if (days < 2 * 365) return std::to_string(days) + "d";
  if (days < 8 * 365) return two(days / 365, "y", days % 365, "d");
  return std::to_string(days / 365) + "y";
}

}  // namespace lockkeeper
