// The mirror of the ledger's slots into Slot objects.
#include "api/base/log.h"
#include "controller/typed.h"
#include "reconcilers/slot/reconciler.h"
#include "reconcilers/slot/status.h"

namespace lockkeeper::slot {
namespace {

constexpr int kOutputLines = 20;
constexpr Duration kMirrorPeriod = Seconds(30);
constexpr char kServerLabel[] = "lockkeeper.dev/server";

Slot NewObject(const ServerRecord& record, const std::string& slot, SlotSpec spec) {
  Slot object;
  object.metadata.namespace_ = record.key.ns;
  object.metadata.name = ObjectName(record.key.name, slot);
  object.metadata.labels[kServerLabel] = record.key.name;
  if (!record.uid.empty()) {
    OwnerReference owner;
    owner.api_version = std::string(Server::kApiVersion);
    owner.kind = std::string(Server::kKind);
    owner.name = record.key.name;
    owner.uid = record.uid;
    owner.controller = true;
    object.metadata.owner_references.push_back(std::move(owner));
  }
  object.spec = std::move(spec);
  return object;
}

}  // namespace

Status Reconciler::MirrorSlot(const ServerRecord& record, const std::string& slot) {
  const SlotEntry& entry = record.slots.at(slot);
  const ObjectKey key{record.key.ns, ObjectName(record.key.name, slot)};
  SlotSpec spec = SpecOf(record, slot, deps_.host);
  Result<Slot> object = Get<Slot>(deps_.api, key);
  if (object.code() == Code::kNotFound) {
    object = Create<Slot>(deps_.api, NewObject(record, slot, spec));
  }
  if (!object.ok()) return object.status();
  if (object->metadata.Deleting()) return Status::Ok();  // made anew once it is gone
  if (object->spec.host != deps_.host && !object->spec.host.empty()) {
    return Status(Code::kPrecondition, "Slot " + key.ToString() + " is of host " + object->spec.host);
  }
  spec.extra = object->spec.extra;
  spec.release_ref = object->spec.release_ref;
  if (object->spec != spec) {
    object->spec = spec;
    object = Update<Slot>(deps_.api, *object);
    if (!object.ok()) return object.status();
  }
  // A server that serves prints all the time; what it printed is of interest while it does not.
  std::vector<std::string> output;
  if (StateOf(entry) != SlotState::kReady || object->status.state != SlotState::kReady) {
    output = deps_.units.LastOutput(entry.intent.unit, kOutputLines).value_or({});
  }
  SlotStatus status = Summarize(entry, object->status, output, object->metadata.generation, deps_.clock.Read().wall);
  if (status == object->status) return Status::Ok();
  object->status = std::move(status);
  return UpdateStatus<Slot>(deps_.api, *object).status();
}

// Objects of slots that the record no longer has: nothing of them is on the host.
Status Reconciler::RemoveStale(const ServerRecord& record) {
  ListOptions ours;
  ours.label_selector = std::string(kServerLabel) + "=" + record.key.name;
  LK_ASSIGN_OR_RETURN(const std::vector<Slot> objects, List<Slot>(deps_.api, record.key.ns, ours));
  for (const Slot& object : objects) {
    const std::string prefix = record.key.name + "-";
    const std::string& name = object.metadata.name;
    const bool named = name.starts_with(prefix) && record.slots.count(name.substr(prefix.size())) != 0;
    if (named || object.spec.host != deps_.host || object.metadata.Deleting()) continue;
    DeleteOptions options;
    options.uid = object.metadata.uid;
    const Status gone = Delete<Slot>(deps_.api, {record.key.ns, name}, options);
    if (!gone.ok() && gone.code() != Code::kNotFound) return gone;
  }
  return Status::Ok();
}

Result<Duration> Reconciler::Mirror(const ObjectKey& server) {
  const ServerKey key{server.namespace_, server.name};
  Result<ServerRecord> record = deps_.ledger.Get(key);
  if (record.code() == Code::kNotFound) {
    record = ServerRecord{};
    record->key = key;
  }
  if (!record.ok()) return record.status();
  // The owner of its Slots is gone: what is made here would be collected at once.
  if (record->released) return kMirrorPeriod;
  for (const auto& [slot, entry] : record->slots) LK_RETURN_IF_ERROR(MirrorSlot(*record, slot));
  LK_RETURN_IF_ERROR(RemoveStale(*record));
  return kMirrorPeriod;
}

}  // namespace lockkeeper::slot
