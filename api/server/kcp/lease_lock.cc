#include "api/server/kcp/lease_lock.h"

#include <utility>

namespace lockkeeper::kcp {
namespace {

Json ToSpec(const ElectionRecord& r) {
  return Json::MakeObject({{"holderIdentity", r.holder},
                           {"leaseDurationSeconds", r.lease_duration_seconds},
                           {"acquireTime", FormatMicroTime(r.acquire_time)},
                           {"renewTime", FormatMicroTime(r.renew_time)},
                           {"leaseTransitions", r.transitions}});
}

ElectionRecord FromSpec(const Json& spec) {
  ElectionRecord r;
  r.holder = spec.Get("holderIdentity").AsString();
  r.lease_duration_seconds = spec.Get("leaseDurationSeconds").AsInt();
  r.acquire_time = ParseTime(spec.Get("acquireTime").AsString()).value_or(Time{});
  r.renew_time = ParseTime(spec.Get("renewTime").AsString()).value_or(Time{});
  r.transitions = spec.Get("leaseTransitions").AsInt();
  return r;
}

}  // namespace

StoreLeaseLock::StoreLeaseLock(apiserver::Store& store, const Faults& faults, std::string ns, std::string name,
                               std::function<Status()> wait_for_store)
    : store_(store),
      faults_(faults),
      key_{kAdminCluster, kLeases, std::move(ns), std::move(name)},
      wait_for_store_(std::move(wait_for_store)) {}

Result<ElectionRecord> StoreLeaseLock::Get() {
  LK_RETURN_IF_ERROR(wait_for_store_());
  LK_RETURN_IF_ERROR(store_.Read([&](apiserver::Session& session) {
    LK_ASSIGN_OR_RETURN(seen_, ReadObject(session, key_));
    return Status::Ok();
  }));
  return FromSpec(seen_->json.Get("spec"));
}

Status StoreLeaseLock::Create(const ElectionRecord& record) {
  LK_RETURN_IF_ERROR(wait_for_store_());
  if (faults_.Has("refuse-lease-create")) return Status(Code::kForbidden, "creating the lease: refused on purpose");
  Object object = NewObject(key_, "coordination.k8s.io/v1", "Lease", SystemClock().Read());
  object.json.Set("spec", ToSpec(record));
  LK_RETURN_IF_ERROR(store_.Write([&](apiserver::Txn& txn) { return WriteObject(txn, &object); }));
  seen_ = std::move(object);
  return Status::Ok();
}

Status StoreLeaseLock::Update(const ElectionRecord& record) {
  LK_RETURN_IF_ERROR(wait_for_store_());
  if (faults_.Has("refuse-lease-renew")) return Status(Code::kForbidden, "renewing the lease: refused on purpose");
  if (!seen_) return Status(Code::kInternal, "renewing the lease: it was never read");
  Object object = *seen_;
  object.json.Set("spec", ToSpec(record));
  LK_RETURN_IF_ERROR(store_.Write([&](apiserver::Txn& txn) {
    object.revision = seen_->revision;
    return WriteObject(txn, &object);
  }));
  seen_ = std::move(object);
  return Status::Ok();
}

}  // namespace lockkeeper::kcp
