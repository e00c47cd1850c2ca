#include "reconcilers/heartbeat/poster.h"

#include <optional>
#include <thread>

#include "api/base/id.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/typed.h"

namespace lockkeeper {

Status EnsureSystemNamespace(Api& api) {
  const Resource namespaces{"", "v1", "namespaces", "Namespace", false};
  const Status found = api.Get(namespaces, {"", kSystemNamespace}).status();
  // Whom RBAC shows no namespaces has the one that manifests/ makes; if not, the Lease's own write says so.
  if (found.code() == Code::kForbidden) return Status::Ok();
  if (found.code() != Code::kNotFound) return found;
  const Json object = Json::MakeObject(
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", Json::MakeObject({{"name", kSystemNamespace}})}});
  const Status made = api.Create(namespaces, object).status();
  return made.code() == Code::kAlreadyExists ? Status::Ok() : made;
}

class HeartbeatPoster::Impl {
 public:
  Impl(Api& api, const Clock& clock, HeartbeatIdentity identity, std::function<int64_t()> ledger_revision)
      : api_(api), clock_(clock), take_over_(identity.take_over), ledger_revision_(std::move(ledger_revision)) {
    content_.host = identity.host;
    content_.identity = identity.host + "_" + NewUuid();
    content_.ledger_id = identity.ledger_id;
    content_.machine_id = identity.machine_id;
  }

  void Start() {
    thread_ = std::thread([this] { Loop(); });
  }

  void BeginStop() {
    MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }

  void Stop() {
    BeginStop();
    if (thread_.joinable()) thread_.join();
  }

  void Posted(const std::string& uid, int64_t revision) {
    MutexLock lock(mutex_);
    int64_t& posted = content_.posted[uid];
    if (posted >= revision) return;
    posted = revision;
    due_ = true;
    changed_.NotifyAll();
  }

  HeartbeatJudgement Judgement() const {
    MutexLock lock(mutex_);
    return judgement_;
  }

  Status Beat() {
    const Now now = clock_.Read();
    const ObjectKey key{kSystemNamespace, HeartbeatName(content_.host)};
    const Fact<Lease> lease = Fact<Lease>::Of(Get<Lease>(api_, key));
    HeartbeatContent content;
    Duration silent{};
    {
      MutexLock lock(mutex_);
      content_.boot_id = now.boot_id;
      content_.ledger_revision = ledger_revision_();
      const std::string fingerprint = lease.known() ? lease->metadata.resource_version : "";
      if (!lease.unknown() && fingerprint != fingerprint_) {
        if (!fingerprint_.empty()) other_wrote_at_ = now.boot;  // our own writes set the fingerprint themselves
        fingerprint_ = fingerprint;
        changed_at_ = now.boot;
      }
      silent = now.boot - changed_at_;
      content = content_;
    }
    HeartbeatJudgement judgement = JudgeHeartbeat(lease, content, silent, take_over_);
    {
      MutexLock lock(mutex_);
      const bool other_lives = other_wrote_at_ && now.boot - *other_wrote_at_ < kHostLostAfter;
      // A ledger that was lost beats no more: this one is another agent's on the same machine.
      if (judgement.verdict == HeartbeatVerdict::kLedgerLost && other_lives) {
        judgement = {HeartbeatVerdict::kHostNameTaken, "another agent on this machine reports as host " + content.host +
                                                           " with another data folder (" + judgement.message +
                                                           "); stop one of them, or give this one another --host"};
      }
    }
    const HeartbeatVerdict verdict = judgement.verdict;
    {
      MutexLock lock(mutex_);
      // An API that is away changes nothing: what was ruled out stays so.
      if (verdict != HeartbeatVerdict::kUnknown) judgement_ = judgement;
    }
    if (verdict == HeartbeatVerdict::kUnknown) return {Code::kUnavailable, judgement.message};
    if (verdict != HeartbeatVerdict::kOurs) return {Code::kPrecondition, judgement.message};
    // Guarded: a create meets another's (AlreadyExists), an update its resourceVersion; both are read again next beat.
    Result<Lease> written(Code::kInternal, "");
    if (lease.known()) {
      written = Update<Lease>(api_, HeartbeatLease(content, lease.get(), now));
    } else {
      LK_RETURN_IF_ERROR(EnsureSystemNamespace(api_));
      written = Create<Lease>(api_, HeartbeatLease(content, nullptr, now));
    }
    if (written.ok()) {
      MutexLock lock(mutex_);
      fingerprint_ = written->metadata.resource_version;
      changed_at_ = now.boot;
    }
    return written.status().Annotate("writing the heartbeat of host " + content.host);
  }

 private:
  void Loop() {
    std::string last_error;
    for (;;) {
      const Status status = Beat();
      const std::string error = status.ok() ? "" : status.ToString();
      if (error != last_error && !error.empty()) LogWarn("heartbeat not written", {{"error", error}});
      last_error = error;
      MutexLock lock(mutex_);
      if (!stopping_ && !due_) changed_.WaitFor(mutex_, status.ok() ? kHeartbeatPeriod : kRetry);
      if (stopping_) return;
      if (due_) {
        due_ = false;
        // Changes come in bursts: one beat for all of one.
        changed_.WaitFor(mutex_, kGather);
        if (stopping_) return;
      }
    }
  }

  static constexpr Duration kRetry = Seconds(1);
  static constexpr Duration kGather = Milliseconds(20);

  Api& api_;
  const Clock& clock_;
  const bool take_over_;
  const std::function<int64_t()> ledger_revision_;
  std::thread thread_;

  mutable Mutex mutex_;
  CondVar changed_;
  HeartbeatContent content_;  // host and identity are constant; the rest is guarded
  HeartbeatJudgement judgement_ LK_GUARDED_BY(mutex_);
  std::string fingerprint_ LK_GUARDED_BY(mutex_);
  Duration changed_at_ LK_GUARDED_BY(mutex_){};
  std::optional<Duration> other_wrote_at_ LK_GUARDED_BY(mutex_);
  bool due_ LK_GUARDED_BY(mutex_) = false;
  bool stopping_ LK_GUARDED_BY(mutex_) = false;
};

HeartbeatPoster::HeartbeatPoster(Api& api, const Clock& clock, HeartbeatIdentity identity,
                                 std::function<int64_t()> ledger_revision)
    : impl_(std::make_unique<Impl>(api, clock, std::move(identity), std::move(ledger_revision))) {}
HeartbeatPoster::~HeartbeatPoster() { impl_->Stop(); }
void HeartbeatPoster::Start() { impl_->Start(); }
void HeartbeatPoster::BeginStop() { impl_->BeginStop(); }
void HeartbeatPoster::Stop() { impl_->Stop(); }
void HeartbeatPoster::Posted(const std::string& uid, int64_t revision) { impl_->Posted(uid, revision); }
HeartbeatJudgement HeartbeatPoster::Judgement() const { return impl_->Judgement(); }
Status HeartbeatPoster::Beat() { return impl_->Beat(); }

}  // namespace lockkeeper
