#include "api/server/auth.h"

#include <openssl/evp.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "api/base/file.h"
#include "api/base/id.h"
#include "api/base/json.h"
#include "api/base/log.h"

namespace lockkeeper::apiserver {
namespace {

int64_t SteadyMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

int64_t ChangedNs(const std::string& path) {
  struct stat file {};
  if (::stat(path.c_str(), &file) != 0) return 0;
  return file.st_mtim.tv_sec * 1'000'000'000LL + file.st_mtim.tv_nsec;
}

// Splits one CSV line; quoted fields may hold commas and doubled quotes.
std::optional<std::vector<std::string>> SplitCsv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

std::vector<std::string> SplitComma(const std::string& text) {
  std::vector<std::string> parts;
  size_t at = 0;
  while (at <= text.size()) {
    const size_t comma = std::min(text.find(',', at), text.size());
    std::string part = text.substr(at, comma - at);
    part.erase(0, part.find_first_not_of(' '));
    if (!part.empty()) parts.push_back(std::move(part));
    at = comma + 1;
  }
  return parts;
}

std::string CsvField(const std::string& field) {
  if (field.find_first_of(",\"") == std::string::npos) return field;
  std::string out = "\"";
  for (char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

}  // namespace

bool User::InGroup(std::string_view group) const {
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

std::string BearerToken(const HttpRequest& request) {
  const std::string header = request.Header("authorization");
  constexpr std::string_view kPrefix = "bearer ";
  if (header.size() <= kPrefix.size()) return "";
  for (size_t i = 0; i < kPrefix.size(); ++i) {
    if (std::tolower(static_cast<unsigned char>(header[i])) != kPrefix[i]) return "";
  }
  const size_t from = header.find_first_not_of(' ', kPrefix.size());
  return from == std::string::npos ? "" : header.substr(from);
}

Result<std::vector<TokenEntry>> ParseTokenFile(std::string_view text) {
  std::vector<TokenEntry> entries;
  int number = 0;
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line[0] == '#') continue;
    const std::optional<std::vector<std::string>> fields = SplitCsv(line);
    if (!fields || fields->size() < 3 || (*fields)[0].empty() || (*fields)[1].empty()) {
      return Status(Code::kInvalid,
                    "token file line " + std::to_string(number) + ": needs token,user,uid[,\"group1,group2\"]");
    }
    TokenEntry entry{(*fields)[0], {(*fields)[1], (*fields)[2], {}}};
    if (fields->size() > 3) entry.user.groups = SplitComma((*fields)[3]);
    entries.push_back(std::move(entry));
  }
  return entries;
}

std::string FormatTokenEntry(const TokenEntry& entry) {
  std::string groups;
  for (const std::string& group : entry.user.groups) groups += (groups.empty() ? "" : ",") + group;
  std::string line = CsvField(entry.token) + "," + CsvField(entry.user.name) + "," + CsvField(entry.user.uid);
  if (!groups.empty()) line += ",\"" + groups + "\"";
  return line + "\n";
}

TokenAuthenticator::TokenAuthenticator(const std::vector<TokenEntry>& entries) {
  MutexLock lock(mutex_);
  Load(entries);
}

Result<std::unique_ptr<TokenAuthenticator>> TokenAuthenticator::FromFile(const std::string& path) {
  std::unique_ptr<TokenAuthenticator> tokens(new TokenAuthenticator());
  tokens->path_ = path;
  const int64_t changed = ChangedNs(path);
  LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Result<std::vector<TokenEntry>> entries = ParseTokenFile(text);
  if (!entries.ok()) return entries.status().Annotate("read " + path);
  MutexLock lock(tokens->mutex_);
  tokens->changed_ns_ = changed;
  tokens->looked_ms_ = SteadyMs();
  tokens->Load(*entries);
  return tokens;
}

void TokenAuthenticator::Load(const std::vector<TokenEntry>& entries) const {
  users_.clear();
  for (const TokenEntry& entry : entries) {
    User user = entry.user;
    if (!user.InGroup("system:authenticated")) user.groups.emplace_back("system:authenticated");
    users_.emplace(Sha256Hex(entry.token), std::move(user));
  }
}

void TokenAuthenticator::Refresh() const {
  if (path_.empty()) return;
  const int64_t now = SteadyMs();
  if (now - looked_ms_ < 1000) return;
  looked_ms_ = now;
  const int64_t changed = ChangedNs(path_);
  if (changed == changed_ns_) return;
  Result<std::string> text = ReadFile(path_);
  Result<std::vector<TokenEntry>> entries =
      text.ok() ? ParseTokenFile(*text) : Result<std::vector<TokenEntry>>(text.status());
  changed_ns_ = changed;
  if (!entries.ok()) {
    LogWarn("the token file cannot be read; the tokens read before stay valid",
            {{"file", path_}, {"error", entries.status().ToString()}});
    return;
  }
  Load(*entries);
  LogInfo("read the token file again", {{"file", path_}, {"tokens", users_.size()}});
}

std::optional<User> TokenAuthenticator::Authenticate(const HttpRequest& request) const {
  const std::string token = BearerToken(request);
  if (token.empty()) return std::nullopt;
  const std::string hash = Sha256Hex(token);
  MutexLock lock(mutex_);
  Refresh();
  const auto it = users_.find(hash);
  if (it == users_.end()) return std::nullopt;
  return it->second;
}

Result<std::string> EnsureTokenFile(const std::string& path) {
  if (!PathExists(path)) {
    const TokenEntry admin{RandomHex(24), {"admin", "admin", {std::string(kMastersGroup)}}};
    LK_RETURN_IF_ERROR(WriteFileAtomic(path, FormatTokenEntry(admin), 0600));
    return admin.token;
  }
  LK_ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  Result<std::vector<TokenEntry>> entries = ParseTokenFile(text);
  if (!entries.ok()) return entries.status().Annotate("read " + path);
  for (const TokenEntry& entry : *entries) {
    if (entry.user.InGroup(kMastersGroup)) return entry.token;
  }
  return Status(Code::kInvalid, "the token file " + path + " has no user in group " + std::string(kMastersGroup) +
                                    ": add a line token,admin,admin,\"" + std::string(kMastersGroup) + "\"");
}

std::string KubeconfigText(const std::vector<KubeconfigContext>& contexts) {
  // All values are of our own making (URLs, base64, hexadecimal), JSON strings are YAML strings.
  auto quote = [](const std::string& text) { return Json(text).Dump(); };
  std::string clusters;
  std::string users;
  std::string list;
  for (const KubeconfigContext& c : contexts) {
    clusters += "- name: " + quote(c.name) + "\n  cluster:\n    server: " + quote(c.server) + "\n";
    if (!c.ca_pem.empty()) clusters += "    certificate-authority-data: " + Base64(c.ca_pem) + "\n";
    list += "- name: " + quote(c.name) + "\n  context:\n    cluster: " + quote(c.name) +
            "\n    user: " + quote(c.user) + "\n";
    const std::string user = "- name: " + quote(c.user) + "\n  user:\n    token: " + quote(c.token) + "\n";
    if (users.find(user) == std::string::npos) users += user;
  }
  return "apiVersion: v1\nkind: Config\nclusters:\n" + clusters + "users:\n" + users + "contexts:\n" + list +
         "current-context: " + quote(contexts.empty() ? "" : contexts.front().name) + "\npreferences: {}\n";
}

Status WriteKubeconfig(const std::string& path, const std::vector<KubeconfigContext>& contexts) {
  const std::string text = KubeconfigText(contexts);
  const Result<std::string> old = ReadFile(path);
  if (old.ok() && *old == text) return Status::Ok();
  return WriteFileAtomic(path, text, 0600);
}

std::string Base64(std::string_view data) {
  std::string out(4 * ((data.size() + 2) / 3) + 1, '\0');
  const int n = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(data.data()), static_cast<int>(data.size()));
  out.resize(static_cast<size_t>(n));
  return out;
}

Result<std::string> FromBase64(std::string_view text) {
  if (text.empty()) return std::string();
  const Status bad(Code::kInvalid, "illegal base64 data");
  if (text.size() % 4 != 0) return bad;
  std::string out(text.size() / 4 * 3 + 1, '\0');
  const int n = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(out.data()),
                                reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
  if (n < 0) return bad;
  size_t padding = 0;
  while (padding < 2 && text[text.size() - 1 - padding] == '=') ++padding;
  if (text.substr(0, text.size() - padding).find('=') != std::string_view::npos) return bad;
  out.resize(static_cast<size_t>(n) - padding);
  return out;
}

}  // namespace lockkeeper::apiserver
