// FrontAdminClient: the port FrontAdmin over the admin sockets of this host's fronts.
//
// Ownership: owns one small HTTP client a front. Threads: thread-safe.
// Failure:   as the port says; kUnavailable names the socket's path.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "api/base/sync.h"
#include "reconcilers/ports/front_admin.h"

namespace lockkeeper {
class Json;
class HttpClient;
struct ClientRequest;
}  // namespace lockkeeper

namespace lockkeeper::front {

class FrontAdminClient : public FrontAdmin {
 public:
  // Sockets are at FrontAdminPath(base_dir, NAMESPACE, NAME).
  explicit FrontAdminClient(std::string base_dir);
  ~FrontAdminClient() override;

  Result<FrontState> Get(const std::string& front) override;
  Result<FrontState> Set(const std::string& front, const FrontTarget& target) override;
  Result<int> Drain(const std::string& front, const std::string& slot, int64_t incarnation, Duration deadline) override;
  // The explicit verb for a front that is outdated: it drains, ends, and its shim starts it again on the same
  // listener. kPrecondition when nobody would start it.
  Status Restart(const std::string& front);

 private:
  std::shared_ptr<HttpClient> ClientOf(const std::string& front);
  // The JSON of a 200, or the error that the front gave.
  Result<Json> Ask(const std::string& front, const ClientRequest& request);

  const std::string base_dir_;
  Mutex mutex_;
  std::map<std::string, std::shared_ptr<HttpClient>> clients_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper::front
