#include "controller/credentials.h"

#include "api/base/file.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/exec_plugin.h"

namespace lockkeeper {

namespace {

constexpr Duration kReread = Seconds(50);
constexpr Duration kExpiryLeeway = Seconds(10);

std::string TrimmedText(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  return text;
}

class FileCredentials : public CredentialSource {
 public:
  FileCredentials(CredentialFiles files, const Clock& clock)
      : files_(std::move(files)), clock_(clock), current_(files_.inline_values) {}

  Result<Credentials> Get() override {
    MutexLock lock(mutex_);
    const Duration now = clock_.Read().boot;
    if (!stale_ && (!HasFiles() || now - read_at_ < kReread)) return current_;
    const Status status = Read();
    // Half-written or unmounted for a moment: what we have may still serve.
    if (!status.ok() && !loaded_) return status;
    if (!status.ok()) LogWarn("keeping old credentials", {{"error", status.message()}});
    loaded_ = true;
    stale_ = false;
    read_at_ = now;
    return current_;
  }

  void Refused(const Credentials& used) override {
    MutexLock lock(mutex_);
    if (used == current_) stale_ = true;
  }

 private:
  bool HasFiles() const {
    return !files_.token_file.empty() || !files_.certificate_file.empty() || !files_.private_key_file.empty();
  }

  Status Read() LK_REQUIRES(mutex_) {
    Credentials fresh = files_.inline_values;
    if (!files_.token_file.empty()) {
      LK_ASSIGN_OR_RETURN(std::string token, ReadFile(files_.token_file));
      fresh.token = TrimmedText(std::move(token));
      if (fresh.token.empty()) return {Code::kInvalid, "token file " + files_.token_file + " is empty"};
    }
    if (!files_.certificate_file.empty()) {
      LK_ASSIGN_OR_RETURN(fresh.certificate_pem, ReadFile(files_.certificate_file));
    }
    if (!files_.private_key_file.empty()) {
      LK_ASSIGN_OR_RETURN(fresh.private_key_pem, ReadFile(files_.private_key_file));
    }
    current_ = std::move(fresh);
    return {};
  }

  const CredentialFiles files_;
  const Clock& clock_;
  Mutex mutex_;
  Credentials current_ LK_GUARDED_BY(mutex_);
  Duration read_at_ LK_GUARDED_BY(mutex_){};
  bool loaded_ LK_GUARDED_BY(mutex_) = false;
  bool stale_ LK_GUARDED_BY(mutex_) = true;
};

class ExecCredentials : public CredentialSource {
 public:
  ExecCredentials(ExecPlugin plugin, const Clock& clock) : plugin_(std::move(plugin)), clock_(clock) {}

  Result<Credentials> Get() override {
    MutexLock lock(mutex_);
    if (current_ && (!current_->expires || clock_.Read().wall < *current_->expires - kExpiryLeeway)) {
      return current_->credentials;
    }
    LK_ASSIGN_OR_RETURN(current_, RunExecPlugin(plugin_));
    return current_->credentials;
  }

  void Refused(const Credentials& used) override {
    MutexLock lock(mutex_);
    if (current_ && current_->credentials == used) current_.reset();
  }

 private:
  const ExecPlugin plugin_;
  const Clock& clock_;
  Mutex mutex_;
  std::optional<ExecResult> current_ LK_GUARDED_BY(mutex_);
};

}  // namespace

std::shared_ptr<CredentialSource> NewFileCredentials(CredentialFiles files, const Clock& clock) {
  return std::make_shared<FileCredentials>(std::move(files), clock);
}

std::shared_ptr<CredentialSource> NewExecCredentials(ExecPlugin plugin, const Clock& clock) {
  return std::make_shared<ExecCredentials>(std::move(plugin), clock);
}

}  // namespace lockkeeper
