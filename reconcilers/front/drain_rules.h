// Drain rules: when a connection on an old backend may end, as pure functions.
//
// Purpose:   a front that is blind to TLS cannot say GOAWAY. It can only pick the moment at which ending a connection
//            costs its client least; these rules pick it.
// Ownership: values. Threads: values. Failure: none.
//
// The race at the quiet point. A client may send its next request just while we close. That request must never be
// half-processed, so the close is a plain close() of both sockets and comes only when nothing unread is in the
// client's receive queue, everything sent to it was acknowledged, and both pipes are empty (the driver looks right
// before it). Bytes that arrive in the instant after the look are answered by the kernel with a reset; they are never
// relayed, for both sockets go in the same call. So the client sees a reused connection that died before a byte of an
// answer, the backend never saw the request, and the one retry that every Kubernetes client makes then is safe.
// A shutdown(SHUT_WR) first would be worse: the late request would reach the backend, and its answer nobody.
// A connection that is still young may be in a TLS handshake, where a client does not retry: it gets a longer silence.
#pragma once

#include <cstdint>

#include "reconcilers/front/connection.h"

namespace lockkeeper::front {

// Microseconds of one monotonic clock.
struct DrainView {
  int64_t now = 0;
  int64_t opened = 0;       // accepted
  int64_t last_client = 0;  // last byte read from the client, 0: none
  int64_t last_server = 0;  // last byte read from the backend, 0: none
  int client_turns = 0;     // how often the client began to speak
  bool server_spoke_last = false;
  ConnectionState state;
  bool may_rehome = true;  // there is another place to go to
  // Of the drain.
  int64_t began = 0;
  int64_t deadline = 0;
  int64_t grace = 0;   // drainSeconds: a client silent for longer is a watcher
  int64_t offset = 0;  // this connection's place in the spread, from `began`
};

struct DrainVerdict {
  enum class Do {
    kWait,    // look again at `at`
    kRehome,  // no byte was ever said: dial the current backend instead
    kClose,   // close, if the sockets' queues are empty; else look again soon
    kCut,     // reset now
  };
  Do action = Do::kWait;
  int64_t at = 0;
  bool watch = false;  // of kClose: in the midst of a stream, whose backend need not be silent
  bool operator==(const DrainVerdict&) const = default;
};

// roll.md's 25 ms.
inline constexpr int64_t kQuietMicros = 25'000;
// For a connection on which the client spoke fewer than kSettledTurns times. TLS 1.3 takes two turns of the client
// before its first answer is read (hello; finished and request), three where the tickets come between them.
inline constexpr int64_t kYoungQuietMicros = 1'000'000;
inline constexpr int kSettledTurns = 3;
// How soon to look again when a queue was not empty at the quiet point.
inline constexpr int64_t kRecheckMicros = 2'000;

DrainVerdict DecideDrain(const DrainView& view);

// The place of connection number `sequence` in a spread of `spread` microseconds: even, and the same every time.
int64_t SpreadOffset(uint64_t sequence, int64_t spread);

}  // namespace lockkeeper::front
