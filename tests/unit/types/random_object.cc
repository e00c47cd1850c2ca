#include "tests/unit/types/random_object.h"

#include <cstdio>
#include <cstdlib>

#include "api/base/time.h"

namespace lockkeeper {

uint64_t TestSeed() {
  static const uint64_t seed = [] {
    const char* given = std::getenv("LK_SEED");
    const uint64_t chosen = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device()();
    std::fprintf(stderr, "LK_SEED=%llu\n", static_cast<unsigned long long>(chosen));
    return chosen;
  }();
  return seed;
}

Json RandomObject::Make(const TypeInfo& type) {
  Json out = Json::MakeObject();
  for (const FieldInfo& field : type.fields) {
    if (!field.required && Below(3) == 0) continue;
    out.Set(field.name, Value(field.value));
  }
  if (unknown_ && type.extra_offset && Below(4) == 0) out.Set("unknown" + std::to_string(Below(3)), Below(100));
  return out;
}

Json RandomObject::Value(const ValueInfo& info) {
  switch (info.kind) {
    case ValueKind::kString: {
      if (info.enum_info != nullptr) {
        return Json(
            info.enum_info->values[static_cast<size_t>(Below(static_cast<int64_t>(info.enum_info->values.size())))]);
      }
      static constexpr const char* kTexts[] = {"", "a", "v1.2.3", "/srv/x", "ü\"\\\n", "null", "5"};
      return Json(kTexts[Below(7)]);
    }
    case ValueKind::kTime: {
      const Time time{Seconds(1700000000.0 + static_cast<double>(Below(100000000)))};
      return Json(info.micro ? FormatMicroTime(time + Duration(Below(1000000))) : FormatTime(time));
    }
    case ValueKind::kInteger: return Json(Below(4) == 0 ? int64_t{0} : Below(kMaxSafeInteger) - (kMaxSafeInteger >> 1));
    case ValueKind::kNumber: return Json(static_cast<double>(Below(1000000)) / 64);
    case ValueKind::kBoolean: return Json(Below(2) == 0);
    case ValueKind::kObject: return Make(*info.type);
    case ValueKind::kList: {
      Json out = Json::MakeArray();
      for (int64_t i = Below(4); i > 0; --i) out.Push(Value(*info.items));
      return out;
    }
    case ValueKind::kMap: {
      Json out = Json::MakeObject();
      for (int64_t i = Below(4); i > 0; --i) out.Set("k" + std::to_string(i), Value(*info.items));
      return out;
    }
    case ValueKind::kAny: break;
  }
  return Json(Below(1000));
}

}  // namespace lockkeeper
