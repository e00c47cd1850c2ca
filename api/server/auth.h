// Authentication by bearer token, the token file and the admin kubeconfig.
//
// Purpose:   tell who asks: a token file of lines `token,user,uid,"group1,group2"` as kube-apiserver's
//            --token-auth-file, re-read when it changes; an admin token and kubeconfig made at the first start.
// Ownership: an Authenticator outlives the handler that uses it.
// Threads:   Authenticate is thread-safe.
// Failure:   a broken line is named by its number, never quoted. An unreadable file keeps the tokens last read.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/base/sync.h"
#include "api/transport/http_server.h"

namespace lockkeeper::apiserver {

struct User {
  std::string name;
  std::string uid;
  std::vector<std::string> groups;

  bool InGroup(std::string_view group) const;
};

inline constexpr std::string_view kMastersGroup = "system:masters";

class Authenticator {
 public:
  virtual ~Authenticator() = default;
  // nullopt: no or wrong credentials, hence 401.
  virtual std::optional<User> Authenticate(const HttpRequest& request) const = 0;
};

// The token of "Authorization: Bearer TOKEN", or "".
std::string BearerToken(const HttpRequest& request);

struct TokenEntry {
  std::string token;
  User user;
};
Result<std::vector<TokenEntry>> ParseTokenFile(std::string_view text);
// One line of a token file.
std::string FormatTokenEntry(const TokenEntry& entry);

// Knows tokens by their hash only, so that a look-up takes the same time whatever a wrong token has in common with a
// right one.
class TokenAuthenticator : public Authenticator {
 public:
  explicit TokenAuthenticator(const std::vector<TokenEntry>& entries);
  // Reads `path` now and again when its time of change differs, looked at no more than once a second.
  static Result<std::unique_ptr<TokenAuthenticator>> FromFile(const std::string& path);

  std::optional<User> Authenticate(const HttpRequest& request) const override LK_EXCLUDES(mutex_);

 private:
  TokenAuthenticator() = default;
  void Load(const std::vector<TokenEntry>& entries) const LK_REQUIRES(mutex_);
  void Refresh() const LK_REQUIRES(mutex_);

  std::string path_;
  mutable Mutex mutex_;
  mutable std::map<std::string, User> users_ LK_GUARDED_BY(mutex_);  // by hash
  mutable int64_t changed_ns_ LK_GUARDED_BY(mutex_) = 0;
  mutable int64_t looked_ms_ LK_GUARDED_BY(mutex_) = 0;
};

// The admin's token of the token file at `path` (the first entry in system:masters). The file is made, 0600, with a
// new random token for user "admin" when it is absent.
Result<std::string> EnsureTokenFile(const std::string& path);

struct KubeconfigContext {
  std::string name;
  std::string server;  // "https://127.0.0.1:6443"
  std::string ca_pem;
  std::string user;
  std::string token;
};
// A kubeconfig with these contexts; the first is current.
std::string KubeconfigText(const std::vector<KubeconfigContext>& contexts);
// Written atomically, 0600, and only when it differs.
Status WriteKubeconfig(const std::string& path, const std::vector<KubeconfigContext>& contexts);

std::string Base64(std::string_view data);
// kInvalid for text that is no standard base64.
Result<std::string> FromBase64(std::string_view text);

}  // namespace lockkeeper::apiserver
