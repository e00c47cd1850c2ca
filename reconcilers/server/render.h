// Render: one slot's process, companions and environment from a Server's template. Pure.
//
// Purpose:   what a rendering says is frozen for one incarnation: nothing in it is looked up again when it starts.
//            Placeholders in command, env and workingDirectory: {root} {slot} {port} {version} {release} {shared}
//            {companion.NAME.port}. {port} is 0 where the port is read from the process; the port of a companion that
//            is read from its process stays a placeholder and is filled in before the go.
// Threads:   pure. Failure: kInvalid with the field path: an unknown placeholder, an empty command, a limit that is no
//            quantity. Such an error is decided by the spec alone: no waiting mends it.
#pragma once

#include <string>

#include "reconcilers/ports/records.h"
#include "reconcilers/server/layout.h"

namespace lockkeeper::roll {

struct RenderInput {
  ServerKey key;
  const ServerSpec& spec;
  std::string slot;
  int64_t incarnation = 0;
  HostBuild build;
  Timeouts timeouts;
  Layout layout;
  std::string ledger_id;
  int64_t ledger_revision = 0;
};

Result<SlotIntent> Render(const RenderInput& input);

// Whether two renderings differ in anything but slot, incarnation, build and ledger revision: TemplateDrift.
bool SameTemplate(const SlotIntent& a, const SlotIntent& b);

// The signal number of a StopSignal.
int SignalOf(StopSignal signal);

// Environment names that every slot's process carries.
inline constexpr char kEnvServer[] = "LOCKKEEPER_SERVER";
inline constexpr char kEnvSlot[] = "LOCKKEEPER_SLOT";
inline constexpr char kEnvIncarnation[] = "LOCKKEEPER_INCARNATION";
inline constexpr char kEnvLedger[] = "LOCKKEEPER_LEDGER";
inline constexpr char kEnvRevision[] = "LOCKKEEPER_LEDGER_REVISION";

}  // namespace lockkeeper::roll
