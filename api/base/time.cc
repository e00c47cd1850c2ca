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
  char buf[64];
  const size_t n = strftime(buf, sizeof buf, "%Y-%m-%dT%H:%M:%S", &parts);
  std::string out(buf, n);
  if (micros) {
    std::snprintf(buf, sizeof buf, ".%06lld", static_cast<long long>(rest));
    out += buf;
  }
  return out + "Z";
}
}  // namespace

std::string FormatTime(Time t) { return Format(t, false); }
std::string FormatMicroTime(Time t) { return Format(t, true); }

Result<Time> ParseTime(std::string_view text) {
  const std::string s(text);
  tm parts{};
  const char* p = strptime(s.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  const auto bad = [&] { return Status(Code::kInvalid, "\"" + s + "\" is not an RFC 3339 time"); };
  if (p == nullptr) return bad();
  int64_t micros = 0;
  if (*p == '.') {
    int digits = 0;
    for (++p; *p >= '0' && *p <= '9'; ++p) {
      if (digits++ < 6) micros = micros * 10 + (*p - '0');
    }
    if (digits == 0) return bad();
    for (; digits < 6; ++digits) micros *= 10;
  }
  int64_t offset = 0;
  if (*p == 'Z' || *p == 'z') {
    ++p;
  } else if (*p == '+' || *p == '-') {
    int h = 0, m = 0, used = 0;
    if (std::sscanf(p + 1, "%2d:%2d%n", &h, &m, &used) != 2 || used != 5) return bad();
    offset = (*p == '+' ? 1 : -1) * (h * 3600 + m * 60);
    p += 6;
  } else {
    return bad();
  }
  if (*p != '\0') return bad();
  return Time(Duration((int64_t{timegm(&parts)} - offset) * 1000000 + micros));
}

std::string FormatAge(Duration d) {
  const int64_t ms = d.count() / 1000;
  if (ms < 0) return "<invalid>";
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
  return std::to_string(days) + "d";
}

}  // namespace lockkeeper
