// Connection: one relayed connection as a pure state machine, (state, event) -> (state, actions).
//
// Purpose:   every rule of a connection's life (hold, dial, retry, half-close, abort, drain) in one table without
//            sockets, so that all states and events can be walked by a test. The driver (relay.h) does the I/O,
//            tells what happened as an event and carries the actions out.
// Ownership: values.
// Threads:   values, no shared state.
// Failure:   none: an event that means nothing in a state changes nothing and asks for nothing.
#pragma once

#include <cstdint>
#include <string_view>

namespace lockkeeper::front {

enum class Phase : uint8_t {
  kHeld,     // accepted, unread, waits in the queue for a backend
  kDialing,  // a connect is on its way
  kBackoff,  // a connect failed, the next one is due soon
  kOpen,     // bytes are relayed
  kClosed,   // over; nothing leads out of here
};

// One direction. "Up" is client to backend, "down" is backend to client.
struct Flow {
  bool stuck = false;   // bytes were read that the destination did not take yet: reading is paused
  bool ended = false;   // nothing more will be read from the source
  bool closed = false;  // nothing more will be written: the FIN is passed on, or the destination is gone
  bool operator==(const Flow&) const = default;
};

struct ConnectionState {
  Phase phase = Phase::kHeld;
  uint8_t tries = 0;    // connects begun since the last release
  bool broken = false;  // a side was reset: the end is a reset too, never a clean FIN
  Flow up;
  Flow down;
  bool operator==(const ConnectionState&) const = default;
};

enum class Event : uint8_t {
  kRelease,  // a backend may be dialled
  kProbe,    // as kRelease, but one try only: the backend did not answer lately
  kDialOk,
  kDialFailed,  // refused, unreachable, or the try's own deadline
  kBackoffOver,
  kBudgetSpent,    // the budget over all tries is used up
  kTargetChanged,  // another backend is current
  kTargetGone,     // the front holds
  kRehome,         // open on a backend that is not current, and no byte was ever read on either side
  kRehomeHeld,     // the same while the front holds
  kClientLeft,     // the client closed or half-closed its side
  kClientReset,
  kHoldExpired,
  kUpStuck,
  kDownStuck,
  kUpFlushed,
  kDownFlushed,
  kUpEof,
  kDownEof,
  kUpReadFailed,     // the client's socket answered a read with an error
  kDownReadFailed,   // the backend's
  kUpWriteFailed,    // the backend's socket answered a write with an error
  kDownWriteFailed,  // the client's
  kQuiet,            // a drain found the quiet point
  kTimeout,          // idle or half-closed for too long
  kCut,              // the drain's deadline, or the front ends
};
inline constexpr int kEvents = static_cast<int>(Event::kCut) + 1;
std::string_view EventName(Event event);

// What the driver has to do, as a set, in the order of the bits.
enum Action : uint16_t {
  kDropBackend = 1 << 0,  // close the backend's socket, count it off its backend
  kPark = 1 << 1,         // into the hold queue, at the place of its accept
  kDial = 1 << 2,         // connect to the target that is current now
  kArmBackoff = 1 << 3,
  kMarkDown = 1 << 4,  // the backend could not be dialled within the budget
  kMarkUp = 1 << 5,    // it was dialled
  kFreeUp = 1 << 6,    // throw away bytes whose destination is gone
  kFreeDown = 1 << 7,
  kFinBackend = 1 << 8,  // shutdown(SHUT_WR)
  kFinClient = 1 << 9,
  kCloseBoth = 1 << 10,  // close in order
  kResetBoth = 1 << 11,  // close with a reset
};

struct Step {
  ConnectionState state;
  uint16_t actions = 0;
  bool operator==(const Step&) const = default;
};

Step Next(const ConnectionState& state, Event event, int max_tries);

// Which readiness the driver has to wait for. Nothing else may be registered: a level-triggered event that nobody
// acts on would spin.
struct Interest {
  bool in = false;
  bool out = false;
  bool left = false;  // EPOLLRDHUP
  bool operator==(const Interest&) const = default;
};
Interest ClientInterest(const ConnectionState& state);
Interest BackendInterest(const ConnectionState& state);

}  // namespace lockkeeper::front
