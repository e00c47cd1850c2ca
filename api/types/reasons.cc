#include "api/types/reasons.h"

namespace lockkeeper {

const std::vector<ReasonInfo>& Reasons() {
#define LK_REASON_ROW(name, doc) {#name, doc},
  static const auto* reasons = new std::vector<ReasonInfo>{LK_REASONS(LK_REASON_ROW)};
#undef LK_REASON_ROW
  return *reasons;
}

bool IsDocumentedReason(std::string_view name) {
  for (const ReasonInfo& info : Reasons()) {
    if (info.name == name) return true;
  }
  return false;
}

}  // namespace lockkeeper
