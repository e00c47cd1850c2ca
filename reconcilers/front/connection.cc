#include "reconcilers/front/connection.h"

namespace lockkeeper::front {
namespace {

// Ends the connection once both directions are over; till then only `actions`.
Step Settle(ConnectionState s, uint16_t actions) {
  if (s.up.closed && s.down.closed) {
    s.phase = Phase::kClosed;
    // A FIN that goes out with the close needs no shutdown of its own.
    actions &= static_cast<uint16_t>(~(kFinBackend | kFinClient));
    actions |= s.broken ? kResetBoth : kCloseBoth;
  }
  return {s, actions};
}

Step End(ConnectionState s, uint16_t actions) {
  s.phase = Phase::kClosed;
  s.up = {false, true, true};
  s.down = {false, true, true};
  return {s, actions};
}

// The source has no more bytes; what it gave before goes out first.
Step SourceEnded(ConnectionState s, Flow ConnectionState::*flow, uint16_t fin) {
  Flow& f = s.*flow;
  if (f.ended) return {s, 0};
  f.ended = true;
  if (f.stuck) return {s, 0};
  f.closed = true;
  return Settle(s, s.broken ? 0 : fin);
}

Step Flushed(ConnectionState s, Flow ConnectionState::*flow, uint16_t fin) {
  Flow& f = s.*flow;
  if (!f.stuck) return {s, 0};
  f.stuck = false;
  if (!f.ended) return {s, 0};
  f.closed = true;
  return Settle(s, s.broken ? 0 : fin);
}

// Nothing can be written in this direction any more, and so nothing need be read for it.
uint16_t GiveUp(ConnectionState& s, Flow ConnectionState::*flow, uint16_t free) {
  Flow& f = s.*flow;
  const uint16_t actions = f.stuck ? free : 0;
  f = {false, true, true};
  return actions;
}

Step ReadFailed(ConnectionState s, Flow ConnectionState::*flow, Flow ConnectionState::*back, uint16_t free_back) {
  s.broken = true;
  const uint16_t freed = GiveUp(s, back, free_back);
  Step step = SourceEnded(s, flow, 0);
  // The way back may have been the last thing open.
  step = step.state.phase == Phase::kClosed ? step : Settle(step.state, step.actions);
  step.actions |= freed;
  return step;
}

Step WriteFailed(ConnectionState s, Flow ConnectionState::*flow, uint16_t free) {
  if ((s.*flow).closed) return {s, 0};
  s.broken = true;
  const uint16_t freed = GiveUp(s, flow, free);
  return Settle(s, freed);
}

Step NextHeld(const ConnectionState& state, Event event, int max_tries) {
  ConnectionState s = state;
  switch (event) {
    case Event::kRelease:
      s.phase = Phase::kDialing;
      s.tries = 1;
      return {s, kDial};
    case Event::kProbe:
      s.phase = Phase::kDialing;
      s.tries = static_cast<uint8_t>(max_tries);
      return {s, kDial};
    // A client that half-closed cannot be told from one that went away, and the queue is for those who wait.
    case Event::kClientLeft:
    case Event::kClientReset:
    case Event::kHoldExpired:
    case Event::kCut: return End(s, kResetBoth);
    default: return {s, 0};
  }
}

Step NextDialing(const ConnectionState& state, Event event, int max_tries) {
  ConnectionState s = state;
  const bool dialing = s.phase == Phase::kDialing;
  const uint16_t drop = dialing ? kDropBackend : 0;
  switch (event) {
    case Event::kDialOk:
      if (!dialing) return {s, 0};
      s.phase = Phase::kOpen;
      return {s, kMarkUp};
    case Event::kDialFailed:
      if (!dialing) return {s, 0};
      if (s.tries < max_tries) {
        s.phase = Phase::kBackoff;
        return {s, kDropBackend | kArmBackoff};
      }
      s.phase = Phase::kHeld;
      s.tries = 0;
      return {s, kDropBackend | kPark | kMarkDown};
    case Event::kBackoffOver:
      if (dialing) return {s, 0};
      s.phase = Phase::kDialing;
      ++s.tries;
      return {s, kDial};
    case Event::kBudgetSpent:
      s.phase = Phase::kHeld;
      s.tries = 0;
      return {s, static_cast<uint16_t>(drop | kPark | kMarkDown)};
    case Event::kTargetChanged:
      s.phase = Phase::kDialing;
      s.tries = 1;
      return {s, static_cast<uint16_t>(drop | kDial)};
    case Event::kTargetGone:
      s.phase = Phase::kHeld;
      s.tries = 0;
      return {s, static_cast<uint16_t>(drop | kPark)};
    case Event::kClientReset:
    case Event::kCut: return End(s, kResetBoth);
    default: return {s, 0};
  }
}

Step NextOpen(const ConnectionState& state, Event event) {
  ConnectionState s = state;
  constexpr auto kUp = &ConnectionState::up;
  constexpr auto kDown = &ConnectionState::down;
  const bool untouched = s.up == Flow{} && s.down == Flow{} && !s.broken;
  switch (event) {
    case Event::kRehome:
      if (!untouched) return {s, 0};
      s.phase = Phase::kDialing;
      s.tries = 1;
      return {s, kDropBackend | kDial};
    case Event::kRehomeHeld:
      if (!untouched) return {s, 0};
      s.phase = Phase::kHeld;
      s.tries = 0;
      return {s, kDropBackend | kPark};
    case Event::kUpStuck:
    case Event::kDownStuck: {
      Flow& f = event == Event::kUpStuck ? s.up : s.down;
      if (!f.ended) f.stuck = true;
      return {s, 0};
    }
    case Event::kUpFlushed: return Flushed(s, kUp, kFinBackend);
    case Event::kDownFlushed: return Flushed(s, kDown, kFinClient);
    case Event::kUpEof: return SourceEnded(s, kUp, kFinBackend);
    case Event::kDownEof: return SourceEnded(s, kDown, kFinClient);
    case Event::kUpReadFailed: return ReadFailed(s, kUp, kDown, kFreeDown);
    case Event::kDownReadFailed: return ReadFailed(s, kDown, kUp, kFreeUp);
    case Event::kUpWriteFailed: return WriteFailed(s, kUp, kFreeUp);
    case Event::kDownWriteFailed: return WriteFailed(s, kDown, kFreeDown);
    case Event::kQuiet:
      if (s.up.stuck || s.down.stuck || s.up.ended || s.down.ended) return {s, 0};
      return End(s, kCloseBoth);
    case Event::kClientReset:
    case Event::kTimeout:
    case Event::kCut: s.broken = true; return End(s, kFreeUp | kFreeDown | kResetBoth);
    default: return {s, 0};
  }
}

}  // namespace

std::string_view EventName(Event event) {
  switch (event) {
    case Event::kRelease: return "Release";
    case Event::kProbe: return "Probe";
    case Event::kDialOk: return "DialOk";
    case Event::kDialFailed: return "DialFailed";
    case Event::kBackoffOver: return "BackoffOver";
    case Event::kBudgetSpent: return "BudgetSpent";
    case Event::kTargetChanged: return "TargetChanged";
    case Event::kTargetGone: return "TargetGone";
    case Event::kRehome: return "Rehome";
    case Event::kRehomeHeld: return "RehomeHeld";
    case Event::kClientLeft: return "ClientLeft";
    case Event::kClientReset: return "ClientReset";
    case Event::kHoldExpired: return "HoldExpired";
    case Event::kUpStuck: return "UpStuck";
    case Event::kDownStuck: return "DownStuck";
    case Event::kUpFlushed: return "UpFlushed";
    case Event::kDownFlushed: return "DownFlushed";
    case Event::kUpEof: return "UpEof";
    case Event::kDownEof: return "DownEof";
    case Event::kUpReadFailed: return "UpReadFailed";
    case Event::kDownReadFailed: return "DownReadFailed";
    case Event::kUpWriteFailed: return "UpWriteFailed";
    case Event::kDownWriteFailed: return "DownWriteFailed";
    case Event::kQuiet: return "Quiet";
    case Event::kTimeout: return "Timeout";
    case Event::kCut: return "Cut";
  }
  return "?";
}

Step Next(const ConnectionState& state, Event event, int max_tries) {
  switch (state.phase) {
    case Phase::kHeld: return NextHeld(state, event, max_tries);
    case Phase::kDialing:
    case Phase::kBackoff: return NextDialing(state, event, max_tries);
    case Phase::kOpen: return NextOpen(state, event);
    case Phase::kClosed: return {state, 0};
  }
  return {state, 0};
}

Interest ClientInterest(const ConnectionState& state) {
  switch (state.phase) {
    case Phase::kHeld: return {.left = true};
    case Phase::kOpen: return {.in = !state.up.ended && !state.up.stuck, .out = state.down.stuck};
    case Phase::kDialing:
    case Phase::kBackoff:
    case Phase::kClosed: return {};
  }
  return {};
}

Interest BackendInterest(const ConnectionState& state) {
  if (state.phase == Phase::kDialing) return {.out = true};
  if (state.phase != Phase::kOpen) return {};
  return {.in = !state.down.ended && !state.down.stuck, .out = state.up.stuck};
}

}  // namespace lockkeeper::front
