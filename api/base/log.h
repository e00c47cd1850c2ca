// Log: structured log lines ("level time message key=value …"), spdlog behind one translation unit.
//
// Purpose: LogInfo("front flipped", {{"from", a}, {"to", b}}). Values are quoted when they need it.
// Threads: thread-safe. Failure: a line that cannot be written is dropped.
// Secrets: callers never pass a token, key or password; MaskSecrets() is for text of others.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace lockkeeper {

enum class LogLevel { kDebug, kInfo, kWarn, kError, kOff };

struct LogField {
  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(v) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v ? "true" : "false") {}
  LogField(std::string_view k, int v) : key(k), value(std::to_string(v)) {}
  LogField(std::string_view k, long v) : key(k), value(std::to_string(v)) {}
  LogField(std::string_view k, unsigned long v) : key(k), value(std::to_string(v)) {}
  LogField(std::string_view k, double v);
  std::string_view key;
  std::string value;
};
using LogFields = std::initializer_list<LogField>;

enum class LogFormat { kText, kJson };
// Before the first line, or the defaults hold: info, text, standard error.
void ConfigureLog(LogLevel level, LogFormat format);
bool LogEnabled(LogLevel level);
void Log(LogLevel level, std::string_view message, LogFields fields = {});

inline void LogDebug(std::string_view m, LogFields f = {}) {
  if (LogEnabled(LogLevel::kDebug)) Log(LogLevel::kDebug, m, f);
}
inline void LogInfo(std::string_view m, LogFields f = {}) { Log(LogLevel::kInfo, m, f); }
inline void LogWarn(std::string_view m, LogFields f = {}) { Log(LogLevel::kWarn, m, f); }
inline void LogError(std::string_view m, LogFields f = {}) { Log(LogLevel::kError, m, f); }

// Replaces bearer tokens, PEM private keys and `password=…`/`token=…` values by "***".
std::string MaskSecrets(std::string_view text);

}  // namespace lockkeeper
