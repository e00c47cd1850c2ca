#include "reconcilers/host/accounts.h"

#include <grp.h>
#include <pwd.h>

#include <array>
#include <cstdlib>

#include "api/base/file.h"

namespace lockkeeper {
namespace {

bool IsNumber(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Result<Account> FindUser(const std::string& user) {
  std::array<char, 16384> buffer;
  passwd entry = {};
  passwd* found = nullptr;
  const bool number = IsNumber(user);
  const auto uid = static_cast<uid_t>(strtoul(user.c_str(), nullptr, 10));
  const int rc = number ? getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found)
                        : getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return Account{entry.pw_uid, entry.pw_gid, entry.pw_name};
  if (number) return Account{uid, static_cast<gid_t>(uid), {}};
  if (rc != 0) return ErrnoStatus("look up user", user, rc);
  return Status(Code::kInvalid, "user \"" + user + "\" does not exist on this host; make it, or name another one");
}

Result<gid_t> FindGroup(const std::string& group) {
  if (IsNumber(group)) return static_cast<gid_t>(strtoul(group.c_str(), nullptr, 10));
  std::array<char, 65536> buffer;
  struct group entry = {};
  struct group* found = nullptr;
  const int rc = getgrnam_r(group.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (found != nullptr) return found->gr_gid;
  if (rc != 0) return ErrnoStatus("look up group", group, rc);
  return Status(Code::kInvalid, "group \"" + group + "\" does not exist on this host; make it, or name another one");
}

std::vector<gid_t> GroupsOf(const Account& account) {
  if (account.name.empty()) return {account.gid};
  int count = 64;
  std::vector<gid_t> groups(static_cast<size_t>(count));
  if (getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) {
    groups.resize(static_cast<size_t>(count));
    if (getgrouplist(account.name.c_str(), account.gid, groups.data(), &count) < 0) return {account.gid};
  }
  groups.resize(static_cast<size_t>(count));
  return groups;
}

}  // namespace lockkeeper
