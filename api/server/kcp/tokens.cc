#include "api/server/kcp/tokens.h"

#include <utility>

#include "api/base/file.h"
#include "api/base/hash.h"

namespace lockkeeper::kcp {

std::string_view TokenClassName(TokenClass token_class) {
  switch (token_class) {
    case TokenClass::kNone: return "";
    case TokenClass::kShardAdmin: return "shard-admin";
    case TokenClass::kKcpAdmin: return "kcp-admin";
    case TokenClass::kTokenFile: return "token-file";
  }
  return "";
}

void Tokens::Add(std::string hash, apiserver::User user, TokenClass token_class) {
  user.groups.emplace_back("system:authenticated");
  by_hash_.insert_or_assign(std::move(hash), Caller{std::move(user), token_class});
}

Result<Tokens> Tokens::Load(const RootFiles& files, const std::string& token_auth_file) {
  Tokens tokens;
  if (!token_auth_file.empty()) {
    LK_ASSIGN_OR_RETURN(const std::string csv, ReadFile(token_auth_file));
    auto entries = apiserver::ParseTokenFile(csv);
    if (!entries.ok()) return entries.status().Annotate("reading " + token_auth_file);
    for (auto& entry : *entries) tokens.Add(Sha256Hex(entry.token), std::move(entry.user), TokenClass::kTokenFile);
  }
  if (!files.shard_admin_hash.empty()) {
    tokens.Add(files.shard_admin_hash, {"shard-admin", "", {std::string(apiserver::kMastersGroup)}},
               TokenClass::kShardAdmin);
  }
  tokens.Add(Sha256Hex(files.kcp_admin_token), {"kcp-admin", "", {"system:kcp:admin"}}, TokenClass::kKcpAdmin);
  return tokens;
}

std::optional<Caller> Tokens::Find(const HttpRequest& request) const {
  if (request.Header("authorization").empty()) {
    return Caller{{"system:anonymous", "", {"system:unauthenticated"}}, TokenClass::kNone};
  }
  const auto entry = by_hash_.find(Sha256Hex(apiserver::BearerToken(request)));
  if (entry == by_hash_.end()) return std::nullopt;
  return entry->second;
}

bool MayUse(const apiserver::User& user, std::string_view cluster_path) {
  if (user.InGroup(apiserver::kMastersGroup)) return true;
  if (cluster_path == "*" || cluster_path.substr(0, 7) == "system:") return false;
  return user.InGroup("system:kcp:admin");
}

}  // namespace lockkeeper::kcp
