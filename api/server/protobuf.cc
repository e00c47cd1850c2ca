#include "api/server/protobuf.h"

#include <cstdint>
#include <optional>
#include <string>

#include "api/base/time.h"
#include "api/server/auth.h"

namespace lockkeeper::apiserver {
namespace {

// One field of a message: its number and, by wire type, its bytes or its number.
struct Field {
  uint32_t number = 0;
  bool is_bytes = false;
  std::string_view bytes;
  uint64_t value = 0;
};

class Message {
 public:
  explicit Message(std::string_view data) : data_(data) {}

  // False at the end or at broken bytes (then broken()).
  bool Next(Field& field) {
    if (at_ >= data_.size() || broken_) return false;
    const std::optional<uint64_t> tag = Varint();
    if (!tag) return Break();
    field = Field{};
    field.number = static_cast<uint32_t>(*tag >> 3);
    switch (*tag & 7) {
      case 0: {
        const std::optional<uint64_t> value = Varint();
        if (!value) return Break();
        field.value = *value;
        return true;
      }
      case 1: return Skip(8);
      case 2: {
        const std::optional<uint64_t> size = Varint();
        if (!size || *size > data_.size() - at_) return Break();
        field.is_bytes = true;
        field.bytes = data_.substr(at_, static_cast<size_t>(*size));
        at_ += static_cast<size_t>(*size);
        return true;
      }
      case 5: return Skip(4);
      default: return Break();
    }
  }
  bool broken() const { return broken_; }

 private:
  std::optional<uint64_t> Varint() {
    uint64_t value = 0;
    for (int shift = 0; shift < 64 && at_ < data_.size(); shift += 7) {
      const auto byte = static_cast<unsigned char>(data_[at_++]);
      value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
    return std::nullopt;
  }
  bool Skip(size_t n) {
    if (n > data_.size() - at_) return Break();
    at_ += n;
    return true;
  }
  bool Break() {
    broken_ = true;
    return false;
  }

  std::string_view data_;
  size_t at_ = 0;
  bool broken_ = false;
};

enum class Type {
  kString,
  kBool,
  kInteger,
  kTime,
  kMicroTime,
  kStringMap,
  kBase64Map,
  kMeta,
  kOwners,
  kStrings,
  kResourceAttributes,
  kNonResourceAttributes,
  kReviewSpec,
  kLeaseSpec,
  kReference,
  kEventSource,
  kEventSeries,
  kPreconditions
};

struct FieldSpec {
  uint32_t number;
  const char* name;
  Type type;
};

bool Decode(std::string_view data, const FieldSpec* specs, size_t count, Json& out);

template <size_t N>
bool Decode(std::string_view data, const FieldSpec (&specs)[N], Json& out) {
  return Decode(data, specs, N, out);
}

// The field numbers of k8s.io/apimachinery's and k8s.io/api's generated.proto.
constexpr FieldSpec kOwner[] = {{1, "kind", Type::kString},     {3, "name", Type::kString},
                                {4, "uid", Type::kString},      {5, "apiVersion", Type::kString},
                                {6, "controller", Type::kBool}, {7, "blockOwnerDeletion", Type::kBool}};
constexpr FieldSpec kObjectMeta[] = {{1, "name", Type::kString},
                                     {2, "generateName", Type::kString},
                                     {3, "namespace", Type::kString},
                                     {5, "uid", Type::kString},
                                     {6, "resourceVersion", Type::kString},
                                     {11, "labels", Type::kStringMap},
                                     {12, "annotations", Type::kStringMap},
                                     {13, "ownerReferences", Type::kOwners},
                                     {14, "finalizers", Type::kStrings}};
constexpr FieldSpec kNamespace[] = {{1, "metadata", Type::kMeta}};
constexpr FieldSpec kConfigMap[] = {{1, "metadata", Type::kMeta},
                                    {2, "data", Type::kStringMap},
                                    {3, "binaryData", Type::kBase64Map},
                                    {4, "immutable", Type::kBool}};
constexpr FieldSpec kSecret[] = {{1, "metadata", Type::kMeta},
                                 {2, "data", Type::kBase64Map},
                                 {3, "type", Type::kString},
                                 {4, "stringData", Type::kStringMap},
                                 {5, "immutable", Type::kBool}};
constexpr FieldSpec kResourceAttributes[] = {{1, "namespace", Type::kString}, {2, "verb", Type::kString},
                                             {3, "group", Type::kString},     {4, "version", Type::kString},
                                             {5, "resource", Type::kString},  {6, "subresource", Type::kString},
                                             {7, "name", Type::kString}};
constexpr FieldSpec kNonResourceAttributes[] = {{1, "path", Type::kString}, {2, "verb", Type::kString}};
constexpr FieldSpec kReviewSpec[] = {{1, "resourceAttributes", Type::kResourceAttributes},
                                     {2, "nonResourceAttributes", Type::kNonResourceAttributes}};
constexpr FieldSpec kAccessReview[] = {{1, "metadata", Type::kMeta}, {2, "spec", Type::kReviewSpec}};
constexpr FieldSpec kSubjectReview[] = {{1, "metadata", Type::kMeta}};

constexpr FieldSpec kLeaseSpec[] = {
    {1, "holderIdentity", Type::kString},    {2, "leaseDurationSeconds", Type::kInteger},
    {3, "acquireTime", Type::kMicroTime},    {4, "renewTime", Type::kMicroTime},
    {5, "leaseTransitions", Type::kInteger}, {6, "strategy", Type::kString},
    {7, "preferredHolder", Type::kString}};
constexpr FieldSpec kLease[] = {{1, "metadata", Type::kMeta}, {2, "spec", Type::kLeaseSpec}};
constexpr FieldSpec kReference[] = {{1, "kind", Type::kString},       {2, "namespace", Type::kString},
                                    {3, "name", Type::kString},       {4, "uid", Type::kString},
                                    {5, "apiVersion", Type::kString}, {6, "resourceVersion", Type::kString},
                                    {7, "fieldPath", Type::kString}};
constexpr FieldSpec kEventSource[] = {{1, "component", Type::kString}, {2, "host", Type::kString}};
constexpr FieldSpec kEventSeries[] = {{1, "count", Type::kInteger}, {2, "lastObservedTime", Type::kMicroTime}};
constexpr FieldSpec kCoreEvent[] = {{1, "metadata", Type::kMeta},
                                    {2, "involvedObject", Type::kReference},
                                    {3, "reason", Type::kString},
                                    {4, "message", Type::kString},
                                    {5, "source", Type::kEventSource},
                                    {6, "firstTimestamp", Type::kTime},
                                    {7, "lastTimestamp", Type::kTime},
                                    {8, "count", Type::kInteger},
                                    {9, "type", Type::kString},
                                    {10, "eventTime", Type::kMicroTime},
                                    {11, "series", Type::kEventSeries},
                                    {12, "action", Type::kString},
                                    {13, "related", Type::kReference},
                                    {14, "reportingComponent", Type::kString},
                                    {15, "reportingInstance", Type::kString}};
constexpr FieldSpec kEvent[] = {{1, "metadata", Type::kMeta},
                                {2, "eventTime", Type::kMicroTime},
                                {3, "series", Type::kEventSeries},
                                {4, "reportingController", Type::kString},
                                {5, "reportingInstance", Type::kString},
                                {6, "action", Type::kString},
                                {7, "reason", Type::kString},
                                {8, "regarding", Type::kReference},
                                {9, "related", Type::kReference},
                                {10, "note", Type::kString},
                                {11, "type", Type::kString},
                                {12, "deprecatedSource", Type::kEventSource},
                                {13, "deprecatedFirstTimestamp", Type::kTime},
                                {14, "deprecatedLastTimestamp", Type::kTime},
                                {15, "deprecatedCount", Type::kInteger}};

constexpr FieldSpec kPreconditions[] = {{1, "uid", Type::kString}, {2, "resourceVersion", Type::kString}};
constexpr FieldSpec kDeleteOptions[] = {{2, "preconditions", Type::kPreconditions},
                                        {3, "orphanDependents", Type::kBool},
                                        {4, "propagationPolicy", Type::kString},
                                        {5, "dryRun", Type::kStrings}};

// Timestamp: seconds 1, nanos 2. Nothing in it, or Go's zero time, is no time.
bool DecodeTime(std::string_view data, bool micro, Json& out) {
  constexpr int64_t kGoZero = -62135596800;
  int64_t seconds = 0, nanos = 0;
  Message message(data);
  Field field;
  while (message.Next(field)) {
    if (field.number == 1) seconds = static_cast<int64_t>(field.value);
    if (field.number == 2) nanos = static_cast<int64_t>(field.value);
  }
  const Time time{std::chrono::seconds(seconds) + std::chrono::microseconds(nanos / 1000)};
  if (!data.empty() && seconds != kGoZero) out = micro ? FormatMicroTime(time) : FormatTime(time);
  return !message.broken();
}

bool DecodeEntry(std::string_view data, bool base64, Json& map) {
  std::string key;
  std::string value;
  Message message(data);
  Field field;
  while (message.Next(field)) {
    if (field.number == 1) key = field.bytes;
    if (field.number == 2) value = field.bytes;
  }
  map[key] = base64 ? Base64(value) : value;
  return !message.broken();
}

bool Decode(std::string_view data, const FieldSpec* specs, size_t count, Json& out) {
  if (!out.IsObject()) out = Json::MakeObject();
  Message message(data);
  Field field;
  while (message.Next(field)) {
    for (size_t i = 0; i < count; ++i) {
      const FieldSpec& spec = specs[i];
      if (spec.number != field.number) continue;
      // An empty text is an unset one: protobuf of Go writes both.
      const bool empty = field.is_bytes && field.bytes.empty();
      bool good = true;
      switch (spec.type) {
        case Type::kString:
          if (!empty) out[spec.name] = field.bytes;
          break;
        case Type::kBool: out[spec.name] = field.value != 0; break;
        case Type::kInteger: out[spec.name] = static_cast<int64_t>(field.value); break;
        case Type::kTime:
        case Type::kMicroTime: {
          Json time;
          good = DecodeTime(field.bytes, spec.type == Type::kMicroTime, time);
          if (!time.IsNull()) out[spec.name] = std::move(time);
          break;
        }
        case Type::kStringMap: good = DecodeEntry(field.bytes, false, out[spec.name]); break;
        case Type::kBase64Map: good = DecodeEntry(field.bytes, true, out[spec.name]); break;
        case Type::kMeta: good = Decode(field.bytes, kObjectMeta, out[spec.name]); break;
        case Type::kOwners: {
          Json owner;
          good = Decode(field.bytes, kOwner, owner);
          out[spec.name].Push(std::move(owner));
          break;
        }
        case Type::kStrings: out[spec.name].Push(field.bytes); break;
        case Type::kResourceAttributes: good = Decode(field.bytes, kResourceAttributes, out[spec.name]); break;
        case Type::kNonResourceAttributes: good = Decode(field.bytes, kNonResourceAttributes, out[spec.name]); break;
        case Type::kReviewSpec: good = Decode(field.bytes, kReviewSpec, out[spec.name]); break;
        case Type::kLeaseSpec: good = Decode(field.bytes, kLeaseSpec, out[spec.name]); break;
        case Type::kReference: good = Decode(field.bytes, kReference, out[spec.name]); break;
        case Type::kEventSource: good = Decode(field.bytes, kEventSource, out[spec.name]); break;
        case Type::kPreconditions: good = Decode(field.bytes, kPreconditions, out[spec.name]); break;
        case Type::kEventSeries: good = Decode(field.bytes, kEventSeries, out[spec.name]); break;
      }
      if (!good) return false;
    }
  }
  return !message.broken();
}

}  // namespace

Result<Json> DecodeProtobuf(std::string_view body) {
  const Status broken(Code::kInvalid, "the protobuf body is broken");
  constexpr std::string_view kMagic("k8s\0", 4);
  if (body.substr(0, 4) != kMagic) return broken;
  // runtime.Unknown: typeMeta 1 {apiVersion 1, kind 2}, raw 2.
  std::string api_version;
  std::string kind;
  std::string_view raw;
  Message envelope(body.substr(4));
  Field field;
  while (envelope.Next(field)) {
    if (field.number == 2) raw = field.bytes;
    if (field.number != 1) continue;
    Message type(field.bytes);
    Field part;
    while (type.Next(part)) {
      if (part.number == 1) api_version = part.bytes;
      if (part.number == 2) kind = part.bytes;
    }
    if (type.broken()) return broken;
  }
  if (envelope.broken()) return broken;
  Json object = Json::MakeObject({{"apiVersion", api_version}, {"kind", kind}});
  bool good = false;
  if (kind == "Namespace") {
    good = Decode(raw, kNamespace, object);
  } else if (kind == "ConfigMap") {
    good = Decode(raw, kConfigMap, object);
  } else if (kind == "Secret") {
    good = Decode(raw, kSecret, object);
  } else if (kind == "SelfSubjectAccessReview") {
    good = Decode(raw, kAccessReview, object);
  } else if (kind == "SelfSubjectReview") {
    good = Decode(raw, kSubjectReview, object);
  } else if (kind == "DeleteOptions") {
    good = Decode(raw, kDeleteOptions, object);
  } else if (kind == "Lease") {
    good = Decode(raw, kLease, object);
  } else if (kind == "Event" && api_version == "v1") {
    good = Decode(raw, kCoreEvent, object);
  } else if (kind == "Event") {
    good = Decode(raw, kEvent, object);
  } else {
    return Status(Code::kUnsupported,
                  "a " + (kind.empty() ? std::string("body") : kind) +
                      " in protobuf is not read here; send JSON (kubectl create -f, kubectl apply -f)");
  }
  if (!good) return broken;
  return object;
}

}  // namespace lockkeeper::apiserver
