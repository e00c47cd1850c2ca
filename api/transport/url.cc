#include "api/transport/url.h"

#include <arpa/inet.h>

#include <charconv>

#include "api/transport/http_client.h"

namespace lockkeeper {

namespace {

constexpr char kHex[] = "0123456789ABCDEF";

bool IsUnreserved(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' ||
         c == '_' || c == '~';
}

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (char c : text) {
    if (IsUnreserved(c)) {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  return out;
}

std::string PercentDecode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      const int high = HexValue(text[i + 1]);
      const int low = HexValue(text[i + 2]);
      if (high >= 0 && low >= 0) {
        out += static_cast<char>(high * 16 + low);
        i += 2;
        continue;
      }
    }
    out += text[i];
  }
  return out;
}

bool IsIpLiteral(const std::string& host) {
  in6_addr buffer;
  return inet_pton(AF_INET, host.c_str(), &buffer) == 1 || inet_pton(AF_INET6, host.c_str(), &buffer) == 1;
}

std::string BaseUrl::HostHeader() const {
  if (!unix_path.empty()) return "localhost";
  std::string out = host.find(':') != std::string::npos ? "[" + host + "]" : host;
  if (port != (tls ? 443 : 80)) out += ":" + std::to_string(port);
  return out;
}

std::string BaseUrl::Where() const {
  if (!unix_path.empty()) return unix_path;
  return (host.find(':') != std::string::npos ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

Result<BaseUrl> ParseBaseUrl(const std::string& url) {
  const auto refuse = [&url](std::string_view why) {
    return Status(Code::kInvalid, "URL \"" + url + "\": " + std::string(why));
  };
  BaseUrl out;
  std::string_view rest = url;
  if (rest.substr(0, 5) == "unix:") {
    rest.remove_prefix(5);
    if (rest.substr(0, 2) == "//") rest.remove_prefix(2);
    if (rest.empty() || rest[0] != '/') return refuse("a Unix socket needs an absolute path");
    out.unix_path = std::string(rest);
    return out;
  }
  if (rest.substr(0, 8) == "https://") {
    out.tls = true;
    rest.remove_prefix(8);
  } else if (rest.substr(0, 7) == "http://") {
    rest.remove_prefix(7);
  } else {
    return refuse("must start with https://, http:// or unix:");
  }
  if (rest.find_first_of("?#") != std::string_view::npos) return refuse("a query or fragment has no place here");
  const size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != std::string_view::npos) out.prefix = std::string(rest.substr(slash));
  while (!out.prefix.empty() && out.prefix.back() == '/') out.prefix.pop_back();
  if (authority.find('@') != std::string_view::npos) return refuse("a user name has no place in it");

  std::string_view port;
  bool has_port = false;
  if (!authority.empty() && authority[0] == '[') {
    const size_t end = authority.find(']');
    if (end == std::string_view::npos) return refuse("\"[\" without \"]\"");
    out.host = std::string(authority.substr(1, end - 1));
    std::string_view tail = authority.substr(end + 1);
    if (!tail.empty() && tail[0] != ':') return refuse("text after \"]\"");
    has_port = !tail.empty();
    if (has_port) port = tail.substr(1);
  } else {
    const size_t colon = authority.find(':');
    out.host = std::string(authority.substr(0, colon));
    has_port = colon != std::string_view::npos;
    if (has_port) port = authority.substr(colon + 1);
  }
  if (out.host.empty()) return refuse("has no host");
  out.port = out.tls ? 443 : 80;
  if (has_port) {
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), out.port);
    if (error != std::errc() || end != port.data() + port.size() || out.port < 1 || out.port > 65535) {
      return refuse("port must be a number from 1 to 65535");
    }
  }
  return out;
}

}  // namespace lockkeeper
