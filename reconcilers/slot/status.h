// Status of one Slot object: a mirror of the ledger and of what the host last showed. Pure.
// Threads: pure. Failure: total.
#pragma once

#include <string>
#include <vector>

#include "api/types/slot.h"
#include "reconcilers/ports/records.h"

namespace lockkeeper::slot {

// "SERVER-SLOT".
std::string SlotName(const std::string& server, const std::string& slot);
// The whole object but for its metadata beyond name and namespace; `old` keeps transition times and unknown members.
Slot ObjectOf(const ServerRecord& record, const std::string& slot, const Slot* old,
              const std::vector<std::string>& last_output, const Now& now);

}  // namespace lockkeeper::slot
