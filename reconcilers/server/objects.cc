#include "reconcilers/server/objects.h"

#include <algorithm>

#include "api/base/hash.h"
#include "controller/typed.h"

namespace lockkeeper::roll {
namespace {

template <typename T>
Result<std::vector<T>> Of(Api& api, const ObjectKey& server) {
  LK_ASSIGN_OR_RETURN(std::vector<T> all, List<T>(api, server.namespace_));
  std::erase_if(all, [&](const T& x) { return x.spec.server_ref.name != server.name; });
  return all;
}

template <typename Spec>
std::string HashOf(Spec spec) {
  spec.controls = Controls{};
  spec.ttl_seconds_after_finished.reset();
  return Sha256Hex(ToJson(spec).DumpCanonical()).substr(0, 16);
}

}  // namespace

Result<Server> ApiObjects::GetServer(const ObjectKey& key) { return Get<Server>(api_, key); }
Result<Front> ApiObjects::GetFront(const ObjectKey& key) { return Get<Front>(api_, key); }
Result<std::vector<Upgrade>> ApiObjects::UpgradesOf(const ObjectKey& server) { return Of<Upgrade>(api_, server); }
Result<std::vector<Roll>> ApiObjects::RollsOf(const ObjectKey& server) { return Of<Roll>(api_, server); }

std::string SpecHash(const Upgrade& upgrade) { return HashOf(upgrade.spec); }
std::string SpecHash(const Roll& roll) { return HashOf(roll.spec); }

}  // namespace lockkeeper::roll
