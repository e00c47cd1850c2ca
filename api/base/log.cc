#include "api/base/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdio>
#include <memory>

#include "api/base/json.h"

namespace lockkeeper {
namespace {

constexpr std::string_view kMask = "***";

spdlog::level::level_enum LevelOf(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
    case LogLevel::kOff: return spdlog::level::off;
  }
  Die(__FILE__, __LINE__, "unknown LogLevel");
}

// In JSON the pattern opens and closes the object; the line's text is its remaining members.
constexpr const char* kTextPattern = "%Y-%m-%dT%H:%M:%S.%fZ %-5l %v";
constexpr const char* kJsonPattern = R"({"time":"%Y-%m-%dT%H:%M:%S.%fZ","level":"%l",%v})";

struct Sink {
  Sink() : logger("lockkeeper", std::make_shared<spdlog::sinks::stderr_sink_mt>()) {
    logger.set_error_handler([](const std::string&) {});
    Configure(LogLevel::kInfo, LogFormat::kText);
  }
  void Configure(LogLevel level, LogFormat wanted) {
    format = wanted;
    logger.set_formatter(std::make_unique<spdlog::pattern_formatter>(
        wanted == LogFormat::kJson ? kJsonPattern : kTextPattern, spdlog::pattern_time_type::utc, "\n"));
    logger.set_level(LevelOf(level));
  }

  LogFormat format = LogFormat::kText;
  spdlog::logger logger;
};

// Never destroyed: a thread that outlives main may still log.
Sink& TheSink() {
  static Sink* const sink = new Sink();
  return *sink;
}

bool NeedsQuotes(std::string_view value) {
  if (value.empty()) return true;
  for (const char c : value) {
    if (static_cast<unsigned char>(c) <= ' ' || c == '"' || c == '=' || c == '\\' || c == 0x7f) return true;
  }
  return false;
}

// Control characters escaped: one call is one line, whatever the text holds.
void AppendEscaped(std::string& line, std::string_view text, bool quoted) {
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (c == '\t') {
      line += "\\t";
    } else if (byte < ' ' || byte == 0x7f) {
      std::array<char, 8> hex;
      std::snprintf(hex.data(), hex.size(), "\\x%02x", byte);
      line += hex.data();
    } else {
      if (quoted && (c == '"' || c == '\\')) line += '\\';
      line += c;
    }
  }
}

std::string TextLine(std::string_view message, LogFields fields) {
  std::string line;
  AppendEscaped(line, message, false);
  for (const auto& field : fields) {
    line += ' ';
    line += field.key;
    line += '=';
    const bool quoted = NeedsQuotes(field.value);
    if (quoted) line += '"';
    AppendEscaped(line, field.value, quoted);
    if (quoted) line += '"';
  }
  return line;
}

std::string JsonMembers(std::string_view message, LogFields fields) {
  Json object = Json::MakeObject({{"message", message}});
  for (const auto& field : fields) object.Set(field.key, field.value);
  const std::string text = object.Dump();
  return text.substr(1, text.size() - 2);
}

bool StartsWithIgnoreCase(std::string_view text, std::string_view lower) {
  if (text.size() < lower.size()) return false;
  for (size_t i = 0; i < lower.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(text[i])) != lower[i]) return false;
  }
  return true;
}

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

// How many characters of `text` a secret's value takes: to the closing quote when it opens with one, else to the
// first blank or separator.
size_t ValueLength(std::string_view text) { return text.find_first_of(" \t\r\n\"',;&)}]"); }

// Where text starts with a word that announces a secret: the length up to the secret itself, else 0.
size_t AnnouncementLength(std::string_view text) {
  constexpr std::string_view kBearer = "bearer ";
  if (StartsWithIgnoreCase(text, kBearer)) return text.find_first_not_of(' ', kBearer.size());
  constexpr std::array<std::string_view, 4> kWords = {"password", "passwd", "token", "client-key-data"};
  for (const std::string_view word : kWords) {
    if (!StartsWithIgnoreCase(text, word)) continue;
    size_t at = word.size();
    if (at < text.size() && (text[at] == '"' || text[at] == '\'')) ++at;
    if (at >= text.size() || (text[at] != '=' && text[at] != ':')) continue;
    at = text.find_first_not_of(' ', at + 1);
    if (at == std::string_view::npos) return 0;
    if (text[at] == '"' || text[at] == '\'') ++at;
    return at;
  }
  return 0;
}

// The length of a PEM block with a private key that text starts with, else 0. One cut off counts to the end.
size_t PrivateKeyLength(std::string_view text) {
  constexpr std::string_view kBegin = "-----BEGIN ";
  if (text.substr(0, kBegin.size()) != kBegin) return 0;
  const size_t label_end = text.find("-----", kBegin.size());
  if (label_end == std::string_view::npos) return 0;
  if (text.substr(0, label_end).find("PRIVATE KEY") == std::string_view::npos) return 0;
  const size_t end = text.find("-----END ", label_end);
  if (end == std::string_view::npos) return text.size();
  const size_t close = text.find("-----", end + 9);
  return close == std::string_view::npos ? text.size() : close + 5;
}

// In "://user:secret@": where the secret is, from the "://". Empty when there is none.
std::string_view UrlPassword(std::string_view text) {
  constexpr std::string_view kScheme = "://";
  if (text.substr(0, kScheme.size()) != kScheme) return {};
  const std::string_view authority = text.substr(0, text.find_first_of("/? \t\r\n\"'", kScheme.size()));
  const size_t at = authority.rfind('@');
  const size_t colon = authority.find(':', kScheme.size());
  if (at == std::string_view::npos || colon == std::string_view::npos || colon > at) return {};
  return text.substr(colon + 1, at - colon - 1);
}

}  // namespace

LogField::LogField(std::string_view k, double v) : key(k) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.6g", v);
  value = text.data();
}

void ConfigureLog(LogLevel level, LogFormat format) { TheSink().Configure(level, format); }

bool LogEnabled(LogLevel level) { return TheSink().logger.should_log(LevelOf(level)); }

void Log(LogLevel level, std::string_view message, LogFields fields) {
  Sink& sink = TheSink();
  if (level == LogLevel::kOff || !sink.logger.should_log(LevelOf(level))) return;
  const std::string line = sink.format == LogFormat::kJson ? JsonMembers(message, fields) : TextLine(message, fields);
  sink.logger.log(LevelOf(level), spdlog::string_view_t(line.data(), line.size()));
}

std::string MaskSecrets(std::string_view text) {
  std::string masked;
  size_t i = 0;
  while (i < text.size()) {
    const std::string_view rest = text.substr(i);
    if (const size_t key = PrivateKeyLength(rest); key > 0) {
      masked += kMask;
      i += key;
      continue;
    }
    if (const std::string_view secret = UrlPassword(rest); !secret.empty()) {
      const size_t before = static_cast<size_t>(secret.data() - rest.data());
      masked += rest.substr(0, before);
      masked += kMask;
      i += before + secret.size();
      continue;
    }
    const bool word_start = i == 0 || !IsWordChar(text[i - 1]);
    const size_t announced = word_start ? AnnouncementLength(rest) : 0;
    // The value of `token: Bearer x` announces again.
    if (announced > 0 && announced != std::string_view::npos && AnnouncementLength(rest.substr(announced)) == 0) {
      const size_t length = ValueLength(rest.substr(announced));
      masked += rest.substr(0, announced);
      if (length != 0) masked += kMask;
      i += announced + std::min(length, rest.size() - announced);
      continue;
    }
    masked += text[i++];
  }
  return masked;
}

}  // namespace lockkeeper
