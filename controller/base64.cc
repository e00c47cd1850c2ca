#include "controller/base64.h"

#include <cstdint>

namespace lockkeeper {

namespace {
constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
}

std::string Base64Encode(std::string_view data) {
  std::string out;
  out.reserve((data.size() + 2) / 3 * 4);
  uint32_t bits = 0;
  int have = 0;
  for (const char c : data) {
    bits = bits << 8 | static_cast<unsigned char>(c);
    for (have += 8; have >= 6; have -= 6) out += kAlphabet[bits >> (have - 6) & 63];
  }
  if (have > 0) out += kAlphabet[bits << (6 - have) & 63];
  while (out.size() % 4 != 0) out += '=';
  return out;
}

Result<std::string> Base64Decode(std::string_view text) {
  std::string out;
  out.reserve(text.size() / 4 * 3);
  uint32_t bits = 0;
  int have = 0;
  size_t characters = 0, padding = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    ++characters;
    if (c == '=') {
      ++padding;
      continue;
    }
    const size_t value = kAlphabet.find(c);
    if (value == std::string_view::npos || padding > 0) return Status(Code::kInvalid, "not base64");
    bits = bits << 6 | static_cast<uint32_t>(value);
    have += 6;
    if (have >= 8) {
      have -= 8;
      out += static_cast<char>(bits >> have & 255);
    }
  }
  if (characters % 4 != 0 || padding > 2) return Status(Code::kInvalid, "not base64: its length does not fit");
  return out;
}

}  // namespace lockkeeper
