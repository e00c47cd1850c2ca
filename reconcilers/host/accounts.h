// Accounts: users and groups of this host by name or number.
// Threads: thread-safe. Failure: kNotFound names the user or group.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "api/base/status.h"

namespace lockkeeper {

struct Account {
  uid_t uid = 0;
  gid_t gid = 0;
  std::string name;  // empty for a number without an entry
};

Result<Account> FindUser(const std::string& user);
Result<gid_t> FindGroup(const std::string& group);
// `gid` and the supplementary groups of a named account.
std::vector<gid_t> GroupsOf(const Account& account);

}  // namespace lockkeeper
