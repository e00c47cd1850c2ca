// FrontService: a whole front in one object: listener, state file, data plane and admin socket.
//
// Purpose:   what `lockkeeper front` runs, and what tests run in their own process.
// Ownership: owns all parts. Destroyed after Run() has returned.
// Threads:   Start() and Run() on one thread; Set, Drain, Get, StopNow from any.
// Failure:   Start: kBusy names the address that is in use and the way out. Set: as the port FrontAdmin says;
//            kExhausted when the disk is full: nothing changed.
#pragma once

#include <memory>
#include <string>

#include "api/base/sync.h"
#include "api/transport/http_server.h"
#include "reconcilers/front/data_plane.h"
#include "reconcilers/front/front_config.h"
#include "reconcilers/front/state_file.h"

namespace lockkeeper::front {

// How long connections may drain when a front ends.
inline constexpr Duration kStopDeadline = Seconds(60);
// For a restart: new connections wait in the kernel meanwhile, and client-go gives a handshake 10 s.
inline constexpr Duration kRestartDeadline = Seconds(5);

class FrontService {
 public:
  explicit FrontService(FrontConfig config);
  ~FrontService();
  FrontService(const FrontService&) = delete;
  FrontService& operator=(const FrontService&) = delete;

  Status Start();
  // The loop; returns after BeginStop and the end of the last connection, or after StopNow.
  void Run();

  // Decides, keeps on disk, then publishes: in this order, one at a time.
  Result<FrontState> Set(const FrontTarget& target);
  Result<FrontState> Get() { return plane_.Get(); }
  Result<int> Drain(const std::string& slot, int64_t incarnation, Duration deadline);
  // Ends in order, to be started again by who passed the listener: nothing is refused meanwhile. kPrecondition when
  // nobody did.
  Status Restart();
  void BeginStop(Duration deadline) { plane_.BeginStop(deadline); }
  void StopNow() { plane_.StopNow(); }
  DataPlane& plane() { return plane_; }
  const std::string& listen() const { return plane_.listen(); }

 private:
  void Serve(const HttpRequest& request, HttpResponse& response);
  void ServeStatus(const HttpRequest& request, HttpResponse& response);
  void ServeTarget(const HttpRequest& request, HttpResponse& response);
  void ServeDrain(const HttpRequest& request, HttpResponse& response);

  const FrontConfig config_;
  StateFile file_;
  DataPlane plane_;
  bool passed_ = false;  // the listener outlives this process
  std::unique_ptr<HttpServer> admin_;
  Mutex set_mutex_;
  TargetState state_ LK_GUARDED_BY(set_mutex_);
};

}  // namespace lockkeeper::front
