#include "reconcilers/front/drain_rules.h"

#include <algorithm>

namespace lockkeeper::front {

DrainVerdict DecideDrain(const DrainView& v) {
  using Do = DrainVerdict::Do;
  const ConnectionState& s = v.state;
  const bool whole = !s.up.ended && !s.down.ended && !s.broken;
  const bool silent = v.last_client == 0 && v.last_server == 0;
  if (silent && whole && v.may_rehome) return {Do::kRehome};

  const bool empty = !s.up.stuck && !s.down.stuck;
  const bool answered = whole && v.server_spoke_last;
  // A watch: the client said what it wants long ago and the server has the word. Between two events or in the midst
  // of them is all one to it; only what was read must have gone out.
  const bool watch = answered && v.now - v.last_client > v.grace;
  if (watch) {
    const int64_t due = std::min(v.began + v.offset, v.deadline);
    if (v.now < due) return {Do::kWait, due};
    if (empty) return {Do::kClose, 0, true};
  }
  if (answered && empty && !watch) {
    const int64_t last = std::max(v.last_client, v.last_server);
    const int64_t quiet = v.client_turns >= kSettledTurns ? kQuietMicros : kYoungQuietMicros;
    if (v.now - last >= quiet) return {Do::kClose};
    if (v.now < v.deadline) return {Do::kWait, std::min(last + quiet, v.deadline)};
  }
  if (v.now >= v.deadline) return {Do::kCut};
  // Who waits for an answer, or for a slow reader, has until the deadline; each look is cheap.
  return {Do::kWait, std::min(v.now + kQuietMicros, v.deadline)};
}

int64_t SpreadOffset(uint64_t sequence, int64_t spread) {
  if (spread <= 0) return 0;
  // Fibonacci hashing: neighbours land far apart.
  const uint64_t mixed = (sequence * 0x9E3779B97F4A7C15ull) >> 32;
  return static_cast<int64_t>((mixed * static_cast<uint64_t>(spread)) >> 32);
}

}  // namespace lockkeeper::front
