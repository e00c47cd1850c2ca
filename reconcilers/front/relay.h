// Relay: the connections of a front and the thin driver around their state machine.
//
// Purpose:   accept, hold, dial, relay and drain, on one thread, by level-triggered epoll with an explicit interest
//            set. connection.h decides what happens; this does it.
// Ownership: owns the listener and every connection's sockets. Borrows the epoll descriptor of its loop.
// Threads:   one: the loop's. Everything outside speaks to it through DataPlane.
// Failure:   of a connection: told to its state machine. Out of descriptors: accepting pauses, nothing is dropped.
//
// Memory: a connection is one Connection (<= 200 bytes) and two descriptors. Bytes are read into one buffer of the loop
// and written at once; only what the destination did not take is kept (at most 64 KiB a direction), and while it is,
// its source is not read.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "api/base/time.h"
#include "reconcilers/front/connection.h"
#include "reconcilers/front/metrics.h"
#include "reconcilers/front/socket_ops.h"
#include "reconcilers/front/timer_heap.h"
#include "reconcilers/ports/front_admin.h"

struct epoll_event;

namespace lockkeeper::front {

struct FrontLimits {
  int max_connections = 8192;
  int hold_connections = 1024;
  Duration hold_time = Seconds(30);
  KeepaliveOptions keepalive;
  Duration connect_timeout = Seconds(1);  // of one try
  int connect_tries = 3;
  Duration connect_budget = Seconds(3);   // of all tries
  Duration idle_timeout = Seconds(3600);  // plus up to 10 %, so that many do not end at once; 0: never
  Duration fin_timeout = Seconds(30);     // of silence once one side has ended
  Duration drain_spread = Seconds(1);
  Duration probe_interval = Milliseconds(200);  // between dials of a backend that is down
  bool operator==(const FrontLimits&) const = default;
};

// One incarnation's invocation at one address, and what is open to it.
struct Backend {
  FrontTarget target;
  SocketAddress address;
  int dialing = 0;
  int open = 0;
  int64_t total = 0;
  bool draining = false;
  int64_t drain_began = 0;
  int64_t drain_deadline = 0;
  int64_t drain_grace = 0;
};

// Bytes that were read and not taken yet.
struct Pending {
  uint32_t size = 0;
  uint32_t offset = 0;
  char* data() { return reinterpret_cast<char*>(this + 1); }
};

struct Connection {
  ConnectionState state;
  uint8_t client_mask = 0;  // what epoll waits for
  uint8_t backend_mask = 0;
  uint8_t client_turns = 0;  // saturates
  bool server_spoke_last = false;
  bool counted_open = false;  // how it stands in counted_on: open, or dialing
  int client = -1;
  int backend = -1;
  uint32_t heap_index = kNotInHeap;
  int64_t due = 0;
  uint64_t sequence = 0;  // of the accept
  // Microseconds of the loop's clock.
  int64_t accepted = 0;
  int64_t held_since = 0;     // first park; 0 once open
  int64_t dialing_since = 0;  // of the first try
  int64_t phase_since = 0;    // of this try, this back-off's end, or the last half-close
  int64_t last_client = 0;
  int64_t last_server = 0;
  Backend* counted_on = nullptr;
  Pending* up = nullptr;
  Pending* down = nullptr;
  Connection* previous = nullptr;  // in the hold queue
  Connection* next = nullptr;      // in the hold queue, or in the free list
};
static_assert(sizeof(Connection) <= 200);

class Relay {
 public:
  Relay(const FrontLimits& limits, int epoll, UniqueFd listener);
  ~Relay();
  Relay(const Relay&) = delete;
  Relay& operator=(const Relay&) = delete;

  // Tag of the listener's epoll data; tags above kFirstTag are the relay's.
  static constexpr uint64_t kListenerTag = 1;
  static constexpr uint64_t kFirstTag = 4096;

  Status Start();
  // The loop's clock for this turn.
  void SetNow(int64_t now) { now_ = now; }
  void Handle(uint64_t tag, uint32_t events);
  // What is due: timers, held connections, accepting. Answers the microseconds until the next due.
  int64_t EndTurn();

  // New connections go there from now on; dials on their way are redirected, held connections released in order.
  void Publish(const FrontTarget& target, int64_t generation);
  // Without a target: holds, and tells the generation that was reached before.
  void ResumeHolding(int64_t generation) { generation_ = generation; }
  Result<int> Drain(const std::string& slot, int64_t incarnation, Duration deadline);
  void BeginStop(Duration deadline);
  void CutAll();
  bool Stopped() const { return stopping_ && live_ == 0 && lingering_.empty(); }

  void Report(FrontState* out) const;
  int OpenOn(const std::string& slot, int64_t incarnation) const;
  std::string MetricsText();
  FrontMetrics& metrics() { return metrics_; }
  // Rises whenever a connection ends.
  uint64_t ended() const { return ended_; }

 private:
  enum Mask : uint8_t { kRegistered = 1, kIn = 2, kOut = 4, kLeft = 8, kMuted = 16 };
  struct Lingering {
    UniqueFd fd;
    int64_t until = 0;
  };

  // relay_io.cc
  void Accept();
  void DialCurrent(Connection* c);
  void FinishDial(Connection* c);
  void OnClient(Connection* c, uint32_t events);
  void OnBackend(Connection* c, uint32_t events);
  void Unwatched(Connection* c, bool client_side);
  void Pump(Connection* c, bool up);
  void Flush(Connection* c, bool up);
  void Keep(Connection* c, bool up, const char* data, size_t size);
  static void Free(Pending** pending);
  void UpdateInterest(Connection* c);
  void SetMask(Connection* c, bool client_side, const Interest& interest);
  void CloseBackend(Connection* c);
  void CloseSockets(Connection* c, bool reset, bool at_once);
  void ResetWhenSent(int fd, bool at_once);
  void UpdateAccepting();

  // relay.cc
  void Apply(Connection* c, Event event);
  void Act(Connection* c, uint16_t actions, Event event);
  void Arm(Connection* c);
  void OnTimer(Connection* c);
  void OnDialTimer(Connection* c);
  void CheckDrain(Connection* c);
  bool QueuesEmpty(const Connection* c, bool client_only) const;
  void Park(Connection* c);
  void Unpark(Connection* c);
  void ReleaseHeld();
  void CountOff(Connection* c);
  Backend* FindOrAdd(const FrontTarget& target, const SocketAddress& address);
  void ForgetUnused();
  void BeginDrainOf(Backend* b, int64_t deadline, int64_t grace);
  Connection* NewConnection(int fd);
  template <typename F>
  void ForEach(F f) {
    for (Connection& c : slab_) {
      if (c.client >= 0) f(&c);
    }
  }
  int64_t Jitter(int64_t micros);

  const FrontLimits limits_;
  const int epoll_;
  UniqueFd listener_;
  int64_t now_ = 0;

  std::optional<FrontTarget> target_;
  int64_t generation_ = 0;
  Backend* current_ = nullptr;  // null on hold
  std::vector<std::unique_ptr<Backend>> backends_;
  bool backend_down_ = false;
  int64_t next_probe_ = 0;

  std::deque<Connection> slab_;
  Connection* free_ = nullptr;
  std::vector<Connection*> ended_this_turn_;  // not reused before the turn's events are through
  int live_ = 0;
  int dialing_ = 0;
  uint64_t sequence_ = 0;
  uint64_t ended_ = 0;
  TimerHeap<Connection> timers_;
  Connection* held_head_ = nullptr;
  Connection* held_tail_ = nullptr;
  int held_ = 0;

  bool accepting_ = false;
  int64_t accept_again_at_ = 0;  // after a famine of descriptors
  int64_t paused_since_ = 0;
  bool stopping_ = false;
  int64_t stop_deadline_ = 0;
  std::vector<Lingering> lingering_;
  uint64_t random_ = 0x2545F4914F6CDD1Dull;
  FrontMetrics metrics_;
  std::array<char, 64 << 10> buffer_;
};

}  // namespace lockkeeper::front
