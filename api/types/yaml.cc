#include "api/types/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace lockkeeper {

namespace {

constexpr size_t kFoldAt = 110;

bool LooksLikeNumberOrTime(const std::string& text) {
  const char c = text.front();
  return std::isdigit(static_cast<unsigned char>(c)) != 0 || c == '+' || c == '-' || c == '.';
}

// What a YAML 1.1 reader would not read back as this very string.
bool NeedsQuotes(const std::string& text) {
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return true;
  static constexpr std::array<std::string_view, 11> kWords = {"null", "true", "false", "yes", "no", "on",
                                                              "off",  "y",    "n",     "~",   "="};
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  if (std::find(kWords.begin(), kWords.end(), lower) != kWords.end() || LooksLikeNumberOrTime(text)) return true;
  if (std::string_view("!&*?|>@`\"'%#{}[],<=:").find(text.front()) != std::string_view::npos) return true;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) return true;
  }
  return text.find(": ") != std::string::npos || text.find(" #") != std::string::npos;
}

std::string Scalar(const std::string& text) {
  if (!NeedsQuotes(text)) return text;
  const bool control =
      std::any_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
  if (control) return Json(text).Dump();  // a JSON string is a double-quoted YAML one
  std::string out = "'";
  for (const char c : text) {
    out += c;
    if (c == '\'') out += '\'';
  }
  return out + "'";
}

// Long prose as a folded block; words are never cut, so a reader joins the lines with single spaces.
bool CanFold(const std::string& text) {
  return text.size() > kFoldAt && text.find("  ") == std::string::npos && text.front() != ' ' && text.back() != ' ' &&
         std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; });
}

std::string Fold(const std::string& text, const std::string& indent) {
  std::string out = ">-";
  size_t begin = 0;
  while (begin < text.size()) {
    size_t end = text.size();
    if (end - begin > kFoldAt) {
      end = text.rfind(' ', begin + kFoldAt);
      if (end == std::string::npos || end <= begin) end = text.find(' ', begin);
      if (end == std::string::npos) end = text.size();
    }
    out += "\n" + indent + text.substr(begin, end - begin);
    begin = end + 1;
  }
  return out;
}

void Print(const Json& value, const std::string& indent, std::string* out);

// The value behind "key:" or "-"; starts on the same line when it is a scalar.
void PrintBehind(const Json& value, const std::string& indent, bool in_list, std::string* out) {
  if ((value.IsObject() || value.IsArray()) && !value.empty()) {
    if (in_list) {
      std::string block;
      Print(value, indent + "  ", &block);
      *out += " " + block.substr(indent.size() + 2);
      return;
    }
    *out += "\n";
    Print(value, value.IsObject() ? indent + "  " : indent, out);
    return;
  }
  *out += " ";
  if (value.IsObject()) {
    *out += "{}";
  } else if (value.IsArray()) {
    *out += "[]";
  } else if (value.IsString()) {
    *out += CanFold(value.AsString()) ? Fold(value.AsString(), indent + "  ") : Scalar(value.AsString());
  } else {
    *out += value.Dump();
  }
  *out += "\n";
}

void Print(const Json& value, const std::string& indent, std::string* out) {
  if (value.IsObject()) {
    for (const auto& [key, member] : value.AsObject()) {
      *out += indent + Scalar(key) + ":";
      PrintBehind(member, indent, false, out);
    }
  } else {
    for (const Json& item : value.AsArray()) {
      *out += indent + "-";
      PrintBehind(item, indent, true, out);
    }
  }
}

}  // namespace

std::string ToYaml(const Json& value) {
  std::string out;
  if ((value.IsObject() || value.IsArray()) && !value.empty()) {
    Print(value, "", &out);
    return out;
  }
  PrintBehind(value, "", false, &out);
  return out.substr(1);
}

}  // namespace lockkeeper
