// Tokens: who a bearer token is, and what that user may do.
//
// Purpose:   the three administrators of admin.kubeconfig and the users of --token-auth-file; system:* clusters and
//            wildcards are for system:masters alone, workspaces also for system:kcp:admin (1.3, S4).
// Ownership: values.
// Threads:   immutable once made.
// Failure:   a broken CSV is kInvalid with its line; tokens are never part of a message.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/base/status.h"
#include "api/server/auth.h"
#include "api/server/kcp/root_files.h"

namespace lockkeeper::kcp {

// Of whom a token is: the knob reject-token names these.
enum class TokenClass { kNone, kShardAdmin, kKcpAdmin, kTokenFile };
std::string_view TokenClassName(TokenClass token_class);  // "shard-admin" …; "" for none

struct Caller {
  apiserver::User user;
  TokenClass token_class = TokenClass::kNone;  // kNone: system:anonymous
};

class Tokens {
 public:
  // `token_auth_file` "": none. Read now, once, as kcp does.
  static Result<Tokens> Load(const RootFiles& files, const std::string& token_auth_file);

  // Without credentials the caller is anonymous; nothing for a token that nobody has.
  std::optional<Caller> Find(const HttpRequest& request) const;

 private:
  void Add(std::string hash, apiserver::User user, TokenClass token_class);

  std::map<std::string, Caller> by_hash_;  // SHA-256 of the token: a look-up tells nothing by its time
};

// `cluster_path` "" for a path outside /clusters/.
bool MayUse(const apiserver::User& user, std::string_view cluster_path);

}  // namespace lockkeeper::kcp
