#include "api/base/id.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

namespace lockkeeper {
namespace {

constexpr std::string_view kHex = "0123456789abcdef";
// Crockford's base 32, the alphabet of ULIDs.
constexpr std::string_view kBase32 = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
// The alphabet of generateName: no vowels, none of 0, 1, 3, so that no word and no misreading comes of it.
constexpr std::string_view kNames = "bcdfghjklmnpqrstvwxz2456789";
constexpr size_t kUlidLength = 26;

void Fill(unsigned char* data, size_t size) {
  while (size > 0) {
    const ssize_t n = ::getrandom(data, size, 0);
    if (n < 0) {
      LK_CHECK(errno == EINTR);
      continue;
    }
    data += n;
    size -= static_cast<size_t>(n);
  }
}

void AppendHex(std::string& text, unsigned char byte) {
  text += kHex[byte >> 4];
  text += kHex[byte & 15];
}

}  // namespace

std::string NewUuid() {
  std::array<unsigned char, 16> bytes;
  Fill(bytes.data(), bytes.size());
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0f) | 0x40);  // version 4
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3f) | 0x80);  // RFC 4122's variant
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    AppendHex(text, bytes[i]);
  }
  return text;
}

std::string NewUlid(Time now) {
  const auto ms = std::max<int64_t>(0, now.time_since_epoch().count() / 1000);
  std::string text(kUlidLength, '0');
  // 10 characters of time, most significant first; then 80 random bits as 16 characters of 5.
  for (int i = 9, shift = 0; i >= 0; --i, shift += 5) text[static_cast<size_t>(i)] = kBase32[(ms >> shift) & 31];
  std::array<unsigned char, 16> bytes;
  Fill(bytes.data(), bytes.size());
  for (size_t i = 0; i < bytes.size(); ++i) text[10 + i] = kBase32[bytes[i] & 31];
  return text;
}

bool IsUlid(std::string_view text) {
  // 48 bits of time fit into 10 characters of 5 bits only up to a first one of 7.
  return text.size() == kUlidLength && text.front() <= '7' &&
         std::all_of(text.begin(), text.end(), [](char c) { return kBase32.find(c) != std::string_view::npos; });
}

std::string RandomHex(size_t bytes) {
  std::string raw(bytes, '\0');
  Fill(reinterpret_cast<unsigned char*>(raw.data()), raw.size());
  std::string text;
  for (const char c : raw) AppendHex(text, static_cast<unsigned char>(c));
  return text;
}

std::string RandomName(size_t length) {
  // Bytes at or over the largest multiple of the alphabet are dropped: no letter is likelier than another.
  constexpr size_t kLimit = 256 - 256 % kNames.size();
  std::string text;
  while (text.size() < length) {
    std::array<unsigned char, 16> bytes;
    Fill(bytes.data(), bytes.size());
    for (const unsigned char byte : bytes) {
      if (byte < kLimit && text.size() < length) text += kNames[byte % kNames.size()];
    }
  }
  return text;
}

}  // namespace lockkeeper
