// Status of a Slot object, from what the ledger says of the slot. Pure.
// Threads: pure. Failure: total.
#pragma once

#include "api/types/slot.h"
#include "reconcilers/ports/records.h"

namespace lockkeeper::slot {

// "SERVER-SLOT".
std::string ObjectName(const std::string& server, const std::string& slot);
SlotSpec SpecOf(const ServerRecord& record, const std::string& slot, const std::string& host);
SlotState StateOf(const SlotEntry& entry);
// `before` lends transition times; `output` is the last lines, masked; empty keeps what stood.
SlotStatus Summarize(const SlotEntry& entry, const SlotStatus& before, const std::vector<std::string>& output,
                     int64_t generation, Time now);

}  // namespace lockkeeper::slot
