#include "reconcilers/peer/prompt.h"

namespace lockkeeper {
namespace {

// A Lease says when it was read, and a probe that is ready stays so: an answer keeps until the next look at a Server at
// rest, 5 s later. A front's holds until something asks a second later.
constexpr Duration kKept = Seconds(10);
constexpr Duration kFrontKept = Seconds(2);

// Which server is meant.
std::string WhomOf(const ServerSpec& spec) {
  if (!spec.access) return "";
  return spec.access->kubeconfig_file + (spec.access->context.empty() ? "" : ", context " + spec.access->context);
}

std::string LeaseName(const ServerSpec& spec) {
  return spec.lease ? "Lease " + spec.lease->path + " " + spec.lease->namespace_ + "/" + spec.lease->name : "Lease";
}

}  // namespace

// The copies: a question may outlive the pass that asked it.
Result<LeaseFact> PromptPeer::GetLease(const ServerSpec& spec) {
  return asker_.Ask<Result<LeaseFact>>(WhomOf(spec), "GET " + LeaseName(spec), kKept,
                                       [this, spec] { return inner_.GetLease(spec); });
}

Status PromptPeer::DeleteLease(const ServerSpec& spec, const LeaseFact& lease) {
  const std::string what = "DELETE " + LeaseName(spec) + " at " + lease.uid + "/" + lease.resource_version;
  return asker_.Ask<Status>(WhomOf(spec), what, kKept, [this, spec, lease] { return inner_.DeleteLease(spec, lease); });
}

Status PromptPeer::CreateProbe(const ServerSpec& spec, const std::string& name) {
  return asker_.Ask<Status>(WhomOf(spec), "POST probe " + name, kKept,
                            [this, spec, name] { return inner_.CreateProbe(spec, name); });
}

Result<ProbeFact> PromptPeer::GetProbe(const ServerSpec& spec, const std::string& name) {
  return asker_.Ask<Result<ProbeFact>>(WhomOf(spec), "GET probe " + name, kKept,
                                       [this, spec, name] { return inner_.GetProbe(spec, name); });
}

Status PromptPeer::DeleteProbe(const ServerSpec& spec, const std::string& name) {
  return asker_.Ask<Status>(WhomOf(spec), "DELETE probe " + name, kKept,
                            [this, spec, name] { return inner_.DeleteProbe(spec, name); });
}

Result<std::vector<std::string>> PromptPeer::ListProbes(const ServerSpec& spec) {
  return asker_.Ask<Result<std::vector<std::string>>>(WhomOf(spec), "LIST probes", kKept,
                                                      [this, spec] { return inner_.ListProbes(spec); });
}

Result<FrontState> PromptFront::Get(const std::string& front) {
  const int64_t revision = revision_();
  const std::string what = "status since revision " + std::to_string(revision);
  Result<FrontState> state =
      asker_.Ask<Result<FrontState>>("front " + front, what, kFrontKept, [this, front] { return inner_.Get(front); });
  const Duration now = clock_.Read().boot;
  const MutexLock lock(mutex_);
  Said& said = said_[front];
  if (state.ok()) {
    said = {revision, now, *state};
  } else if (state.code() != Code::kBusy) {
    said = Said{};
  } else if (said.at != Duration{} && said.revision == revision && now - said.at <= kFrontKept) {
    return said.state;
  }
  return state;
}

}  // namespace lockkeeper
