#include "controller/leader_election.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <random>

#include "api/base/id.h"
#include "api/base/log.h"
#include "api/base/sync.h"
#include "controller/metrics.h"

namespace lockkeeper {

namespace {

const Resource& LeaseResource() {
  static const Resource kLease{"coordination.k8s.io", "v1", "leases", "Lease", true};
  return kLease;
}

std::string NewIdentity() {
  char host[256] = "unknown";
  gethostname(host, sizeof host - 1);
  return std::string(host) + "_" + NewUuid();
}

}  // namespace

class LeaderElection::Impl {
 public:
  Impl(Api& api, const Clock& clock, LeaderElectionOptions options, std::atomic<State>& state)
      : api_(api),
        clock_(clock),
        options_(std::move(options)),
        identity_(options_.identity.empty() ? NewIdentity() : options_.identity),
        state_(state),
        random_(options_.seed != 0 ? options_.seed : std::random_device{}()) {
    LK_CHECK(options_.lease_duration > options_.renew_deadline);
    LK_CHECK(options_.renew_deadline > options_.retry_period * 6 / 5);
    SetGauge(0);
  }

  State Step(Duration* wait) {
    const Now start = clock_.Read();
    const Attempt attempt = Try(start);
    const State before = state_.load();
    if (attempt == Attempt::kHeld) {
      renewed_at_.store(start.boot.count());
      if (before != State::kLeading) {
        LogInfo("leading", {{"lease", Name()}, {"identity", identity_}});
        state_.store(State::kLeading);
        SetGauge(1);
      }
      *wait = options_.retry_period;
      return State::kLeading;
    }
    if (before != State::kLeading) {
      // 2.0 to 4.4 s, so that many candidates do not come at once.
      std::uniform_real_distribution<double> extra(0, 1.2);
      *wait = options_.retry_period +
              Duration(static_cast<int64_t>(static_cast<double>(options_.retry_period.count()) * extra(random_)));
      return before;
    }
    const Duration left = Left();
    if (attempt == Attempt::kTaken || left <= Duration::zero()) {
      LogError("lost the lease", {{"lease", Name()}, {"holder", holder()}, {"identity", identity_}});
      state_.store(State::kLost);
      SetGauge(0);
      *wait = Duration::zero();
      return State::kLost;
    }
    *wait = std::min(options_.retry_period, left);
    return State::kLeading;
  }

  Status Run(const CancelToken& cancel, const std::function<void()>& on_leading) {
    bool told = false;
    while (true) {
      if (cancel.cancelled()) return {Code::kCancelled, "leader election stopped"};
      Duration wait{};
      const State state = Step(&wait);
      if (state == State::kLost) {
        const std::string other = holder();
        return {Code::kBusy, "lost the lease " + Name() +
                                 (other == identity_ ? ": not renewed within " + FormatAge(options_.renew_deadline)
                                                     : ": taken by \"" + other + "\"")};
      }
      if (state == State::kLeading && !told) {
        told = true;
        on_leading();
      }
      pollfd p{cancel.fd(), POLLIN, 0};
      const timespec pause{wait.count() / 1000000, wait.count() % 1000000 * 1000};
      ppoll(&p, 1, &pause, nullptr);
    }
  }

  Status Release() {
    if (state_.load() != State::kLeading) return {};
    state_.store(State::kStandby);
    SetGauge(0);
    Status status;
    for (int i = 0; i < 3; ++i) {
      Json lease = observed_;
      Json& spec = lease["spec"];
      spec.Set("holderIdentity", "");
      spec.Set("leaseDurationSeconds", 1);
      const std::string now = FormatMicroTime(clock_.Read().wall);
      spec.Set("renewTime", now);
      spec.Set("acquireTime", now);
      auto answer = api_.Update(LeaseResource(), lease);
      status = answer.status();
      if (answer.ok()) {
        Observe(*answer, clock_.Read().boot);
        return {};
      }
      if (answer.code() != Code::kConflict) break;
      auto current = api_.Get(LeaseResource(), Key());
      if (!current.ok()) return current.status().Annotate("giving the lease away");
      Observe(*current, clock_.Read().boot);
      if (holder() != identity_) return {};
    }
    return status.Annotate("giving the lease away");
  }

  Duration Left() const {
    if (state_.load() != State::kLeading) return Duration::zero();
    return Duration(renewed_at_.load()) + options_.renew_deadline - clock_.Read().boot;
  }

  Status Check() const {
    if (state_.load() != State::kLeading) return {};
    const Duration late = clock_.Read().boot - Duration(renewed_at_.load());
    if (late <= options_.lease_duration + options_.stuck_tolerance) return {};
    return {Code::kTimeout,
            "the lease " + Name() + " was last renewed " + FormatAge(late) + " ago: the election is stuck"};
  }

  const std::string& identity() const { return identity_; }
  std::string holder() const {
    MutexLock lock(mutex_);
    return holder_;
  }

 private:
  enum class Attempt { kHeld, kFailed, kTaken };

  std::string Name() const { return options_.namespace_ + "/" + options_.name; }
  ObjectKey Key() const { return {options_.namespace_, options_.name}; }

  void SetGauge(double value) const {
    if (options_.metrics != nullptr)
      options_.metrics->Set("leader_election_master_status", {{"name", options_.name}}, value);
  }

  Attempt Try(const Now& now) {
    // The fast path: we hold it, and nobody else can have taken it in the meantime.
    if (state_.load() == State::kLeading && observed_.IsObject() && holder() == identity_) {
      auto answer = api_.Update(LeaseResource(), Renewed(now));
      if (answer.ok()) return Held(*answer);
      LogDebug("lease renewal failed, reading it", {{"lease", Name()}, {"error", answer.status().ToString()}});
      if (options_.metrics != nullptr) {
        options_.metrics->Add("leader_election_slowpath_total", {{"name", options_.name}});
      }
    }
    auto current = api_.Get(LeaseResource(), Key());
    if (current.code() == Code::kNotFound) {
      auto created = api_.Create(LeaseResource(), Fresh(now));
      if (created.ok()) return Held(*created);
      LogDebug("lease creation failed", {{"lease", Name()}, {"error", created.status().ToString()}});
      return Attempt::kFailed;
    }
    if (!current.ok()) {
      LogDebug("lease cannot be read", {{"lease", Name()}, {"error", current.status().ToString()}});
      return Attempt::kFailed;
    }
    Observe(*current, now.boot);
    const std::string other = holder();
    if (!other.empty() && other != identity_) {
      const Duration theirs = Seconds(static_cast<double>(observed_.At({"spec", "leaseDurationSeconds"}).AsInt()));
      if (observed_at_ + theirs > now.boot)
        return state_.load() == State::kLeading ? Attempt::kTaken : Attempt::kFailed;
      // It ran out; but a leader that finds another's record, even an old one, has lost.
      if (state_.load() == State::kLeading) return Attempt::kTaken;
    }
    auto answer = api_.Update(LeaseResource(), Renewed(now));
    if (answer.ok()) return Held(*answer);
    LogDebug("lease not taken", {{"lease", Name()}, {"error", answer.status().ToString()}});
    return Attempt::kFailed;
  }

  Attempt Held(const Json& lease) {
    Observe(lease, clock_.Read().boot);
    return Attempt::kHeld;
  }

  // Remembers the record, and when it was seen to change.
  void Observe(const Json& lease, Duration now) {
    const bool changed = !observed_.IsObject() || !(observed_.Get("spec") == lease.Get("spec"));
    if (changed) observed_at_ = now;
    observed_ = lease;
    MutexLock lock(mutex_);
    holder_ = lease.At({"spec", "holderIdentity"}).AsString();
  }

  int64_t LeaseSeconds() const { return (options_.lease_duration.count() + 999999) / 1000000; }

  Json Fresh(const Now& now) const {
    const std::string time = FormatMicroTime(now.wall);
    return Json::MakeObject(
        {{"apiVersion", "coordination.k8s.io/v1"},
         {"kind", "Lease"},
         {"metadata", Json::MakeObject({{"name", options_.name}, {"namespace", options_.namespace_}})},
         {"spec", Json::MakeObject({{"holderIdentity", identity_},
                                    {"leaseDurationSeconds", LeaseSeconds()},
                                    {"acquireTime", time},
                                    {"renewTime", time},
                                    {"leaseTransitions", 0}})}});
  }

  // The observed record, ours from now on; what others keep in it stays.
  Json Renewed(const Now& now) const {
    Json lease = observed_;
    Json& spec = lease["spec"];
    const std::string time = FormatMicroTime(now.wall);
    if (spec.Get("holderIdentity").AsString() != identity_) {
      spec.Set("holderIdentity", identity_);
      spec.Set("acquireTime", time);
      spec.Set("leaseTransitions", spec.Get("leaseTransitions").AsInt() + 1);
    }
    spec.Set("leaseDurationSeconds", LeaseSeconds());
    spec.Set("renewTime", time);
    return lease;
  }

  Api& api_;
  const Clock& clock_;
  const LeaderElectionOptions options_;
  const std::string identity_;
  std::atomic<State>& state_;
  std::mt19937_64 random_;
  std::atomic<Duration::rep> renewed_at_{0};

  // The stepping thread's.
  Json observed_;
  Duration observed_at_{};

  mutable Mutex mutex_;
  std::string holder_ LK_GUARDED_BY(mutex_);
};

LeaderElection::LeaderElection(Api& api, const Clock& clock, LeaderElectionOptions options)
    : impl_(std::make_unique<Impl>(api, clock, std::move(options), state_)) {}
LeaderElection::~LeaderElection() = default;

LeaderElection::State LeaderElection::Step(Duration* wait) { return impl_->Step(wait); }
Status LeaderElection::Run(const CancelToken& cancel, const std::function<void()>& on_leading) {
  return impl_->Run(cancel, on_leading);
}
Status LeaderElection::Release() { return impl_->Release(); }
Duration LeaderElection::Left() const { return impl_->Left(); }
Status LeaderElection::Check() const { return impl_->Check(); }
const std::string& LeaderElection::identity() const { return impl_->identity(); }
std::string LeaderElection::holder() const { return impl_->holder(); }

}  // namespace lockkeeper
