// Url: the parts of a base URL, and percent-encoding.
//
// Purpose:   "https://host:port/prefix", "http://…" and "unix:/path/to/socket" taken apart.
// Ownership: a value.
// Threads:   values, no shared state.
// Failure:   ParseBaseUrl answers kInvalid and names the URL.
#pragma once

#include <string>
#include <string_view>

#include "api/base/status.h"

namespace lockkeeper {

struct BaseUrl {
  bool tls = false;
  std::string unix_path;  // set for "unix:"; host and port are empty then
  std::string host;       // without the brackets of an IPv6 literal
  int port = 0;           // 443 or 80 where the URL has none
  std::string prefix;     // "" or "/clusters/root", never with a slash at the end

  // As it stands in a Host header: brackets for IPv6, no port where it is the scheme's own.
  std::string HostHeader() const;
  // "host:port" or the socket's path, for messages.
  std::string Where() const;
};

Result<BaseUrl> ParseBaseUrl(const std::string& url);

// Whether `host` is an IPv4 or IPv6 literal.
bool IsIpLiteral(const std::string& host);

}  // namespace lockkeeper
