#include "api/types/meta.h"

#include <algorithm>

#include "api/types/event.h"
#include "api/types/field_limits.h"
#include "api/types/lease.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(ConditionStatus) {
  static const EnumInfo info{"ConditionStatus", {"Unknown", "True", "False"}};
  return info;
}

bool ObjectMeta::HasFinalizer(std::string_view wanted) const {
  return std::find(finalizers.begin(), finalizers.end(), wanted) != finalizers.end();
}

const OwnerReference* ObjectMeta::ControllerRef() const {
  for (const OwnerReference& owner : owner_references) {
    if (owner.controller.value_or(false)) return &owner;
  }
  return nullptr;
}

const TypeInfo& OwnerReference::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<OwnerReference> b("OwnerReference", "An object that owns this one; it is collected with its owners.");
    b.Field(&OwnerReference::api_version, "apiVersion", "API version of the owner.").Required();
    b.Field(&OwnerReference::kind, "kind", "Kind of the owner.").Required();
    b.Field(&OwnerReference::name, "name", "Name of the owner.").Required();
    b.Field(&OwnerReference::uid, "uid", "UID of the owner.").Required();
    b.Field(&OwnerReference::controller, "controller", "Whether this owner is the managing controller.");
    b.Field(&OwnerReference::block_owner_deletion, "blockOwnerDeletion",
            "Whether a foreground deletion of the owner waits for this object.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ObjectMeta::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<ObjectMeta> b("ObjectMeta", "Standard object metadata.");
    b.Field(&ObjectMeta::name, "name", "Name, unique within the namespace.");
    b.Field(&ObjectMeta::generate_name, "generateName", "Prefix of a name that the server makes.");
    b.Field(&ObjectMeta::namespace_, "namespace", "Namespace.");
    b.Field(&ObjectMeta::uid, "uid", "Unique in time and space; set by the server.");
    b.Field(&ObjectMeta::resource_version, "resourceVersion", "Opaque version for optimistic locking and watches.");
    b.Field(&ObjectMeta::generation, "generation", "Counts changes of the spec.");
    b.Field(&ObjectMeta::creation_timestamp, "creationTimestamp", "When it was created.");
    b.Field(&ObjectMeta::deletion_timestamp, "deletionTimestamp", "When its deletion was asked for.");
    b.Field(&ObjectMeta::deletion_grace_period_seconds, "deletionGracePeriodSeconds", "Grace period of the deletion.");
    b.Field(&ObjectMeta::labels, "labels", "Labels, for selectors.");
    b.Field(&ObjectMeta::annotations, "annotations", "Annotations.");
    b.Field(&ObjectMeta::finalizers, "finalizers", "What must be removed before the object may go.");
    b.Field(&ObjectMeta::owner_references, "ownerReferences", "Owners.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Condition::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Condition> b("Condition", "One thing that holds or does not.");
    b.Field(&Condition::type, "type", "Which condition, in CamelCase.").Required().Length(1, 316);
    b.Field(&Condition::status, "status", "True, False or Unknown.").Required();
    b.Field(&Condition::observed_generation, "observedGeneration",
            "The metadata.generation that this condition speaks of; kubectl wait ignores a condition that lags.")
        .Range(0, kMaxSafeInteger);
    b.Field(&Condition::last_transition_time, "lastTransitionTime", "When status last changed.").Required();
    b.Field(&Condition::reason, "reason", "Why, in CamelCase, from the list in the reference.")
        .Required()
        .Length(1, 1024);
    b.Field(&Condition::message, "message", "Why, for a person; holds no counters.").Required().Length(0, 32768);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LocalRef::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<LocalRef> b("LocalRef", "A name in the same namespace.");
    Name(b.Field(&LocalRef::name, "name", "Name of the object, in the same namespace.")).Required();
    return b.Build();
  }();
  return *type;
}

const TypeInfo& NextAction::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<NextAction> b("NextAction", "What a person can do: one command and what it risks.");
    b.Field(&NextAction::code, "code", "Stable name of the action, in CamelCase.").Required().Length(1, 64);
    b.Field(&NextAction::command, "command", "The command as typed.").Length(0, kTextLength);
    b.Field(&NextAction::risk, "risk", "What it costs or may lose.").Length(0, kTextLength);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Progress::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Progress> b("Progress", "The numbers that condition messages do not hold; at most one write a second.");
    b.Field(&Progress::step, "step", "The step or phase it speaks of.").Length(0, 64);
    b.Field(&Progress::message, "message", "One line for a person.").Length(0, kTextLength);
    b.Field(&Progress::percent, "percent", "How far, where the whole is known.").Range(0, 100);
    Count(b.Field(&Progress::done, "done", "How much is done, in `unit`."));
    Count(b.Field(&Progress::total, "total", "How much there is, in `unit`."));
    b.Field(&Progress::unit, "unit", "Unit of done and total: bytes, connections, runners.").Length(0, 32);
    b.Field(&Progress::expected_seconds, "expectedSeconds", "Seconds the step is expected to take.");
    b.Field(&Progress::updated_at, "updatedAt", "When these numbers were taken.").Micro();
    return b.Build();
  }();
  return *type;
}

const TypeInfo& LeaseSpec::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<LeaseSpec> b("LeaseSpec", "Who holds the lease, and since when.");
    b.Field(&LeaseSpec::holder_identity, "holderIdentity", "Identity of the holder; empty: free.");
    b.Field(&LeaseSpec::lease_duration_seconds, "leaseDurationSeconds",
            "Seconds without renewal until others may take it.");
    b.Field(&LeaseSpec::acquire_time, "acquireTime", "When the holder took it.").Micro();
    b.Field(&LeaseSpec::renew_time, "renewTime", "When the holder last renewed it.").Micro();
    b.Field(&LeaseSpec::lease_transitions, "leaseTransitions", "How often the holder changed.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Lease::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Lease> b("Lease", "A lease: election, leadership, heartbeat.");
    b.Field(&Lease::metadata, "metadata", "Standard object metadata.");
    b.Field(&Lease::spec, "spec", "Who holds the lease, and since when.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ObjectReference::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<ObjectReference> b("ObjectReference", "Names an object.");
    b.Field(&ObjectReference::api_version, "apiVersion", "API version.");
    b.Field(&ObjectReference::kind, "kind", "Kind.");
    b.Field(&ObjectReference::namespace_, "namespace", "Namespace.");
    b.Field(&ObjectReference::name, "name", "Name.");
    b.Field(&ObjectReference::uid, "uid", "UID.");
    b.Field(&ObjectReference::resource_version, "resourceVersion", "Version of the object it speaks of.");
    b.Field(&ObjectReference::field_path, "fieldPath", "Part of the object.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& EventSource::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<EventSource> b("EventSource", "Who says so.");
    b.Field(&EventSource::component, "component", "The component.");
    b.Field(&EventSource::host, "host", "The host.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& EventSeries::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<EventSeries> b("EventSeries", "Repetitions of one event.");
    b.Field(&EventSeries::count, "count", "How often.");
    b.Field(&EventSeries::last_observed_time, "lastObservedTime", "When last.").Micro();
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Event::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Event> b("Event", "Something that happened to an object.");
    b.Field(&Event::metadata, "metadata", "Standard object metadata.");
    b.Field(&Event::involved_object, "involvedObject", "What it happened to.").Required();
    b.Field(&Event::reason, "reason", "What happened, in CamelCase.");
    b.Field(&Event::message, "message", "What happened, for a person.");
    b.Field(&Event::type, "type", "Normal or Warning.");
    b.Field(&Event::source, "source", "Who says so.");
    b.Field(&Event::count, "count", "How often.");
    b.Field(&Event::first_timestamp, "firstTimestamp", "When first.");
    b.Field(&Event::last_timestamp, "lastTimestamp", "When last.");
    b.Field(&Event::event_time, "eventTime", "When first, with microseconds.").Micro();
    b.Field(&Event::action, "action", "What was done.");
    b.Field(&Event::series, "series", "Repetitions.");
    b.Field(&Event::related, "related", "A second object.");
    b.Field(&Event::reporting_component, "reportingComponent", "The reporting controller.");
    b.Field(&Event::reporting_instance, "reportingInstance", "The reporting instance.");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
