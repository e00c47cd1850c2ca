// StoreLeaseLock: the controller Lease of the system:admin cluster as an Elector sees it.
//
// Purpose:   /clusters/system:admin/apis/coordination.k8s.io/v1/namespaces/NS/leases/NAME, read and written in the
//            shared store the way kcp does over its loopback: a replace carries uid and version of the object seen
//            last, so a deleted Lease is a conflict.
// Ownership: borrows the store and the faults.
// Threads:   one thread at a time.
// Failure:   the store's; a fault on purpose is kForbidden or, for a stall, kTimeout after `patience`.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "api/server/kcp/elector.h"
#include "api/server/kcp/faults.h"
#include "api/server/kcp/objects.h"

namespace lockkeeper::kcp {

class StoreLeaseLock : public LeaseLock {
 public:
  // `wait_for_store`: returns when the store answers again, kTimeout when it does not in time.
  StoreLeaseLock(apiserver::Store& store, const Faults& faults, std::string ns, std::string name,
                 std::function<Status()> wait_for_store);

  Result<ElectionRecord> Get() override;
  Status Create(const ElectionRecord& record) override;
  Status Update(const ElectionRecord& record) override;

 private:
  apiserver::Store& store_;
  const Faults& faults_;
  const apiserver::Key key_;
  const std::function<Status()> wait_for_store_;
  std::optional<Object> seen_;
};

}  // namespace lockkeeper::kcp
