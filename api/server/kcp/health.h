// Health: /healthz, /livez and /readyz of a kcp, in its own words (2.1 to 2.3, S5).
//
// Purpose:   named checks; the short body when all is well, the verbose one on demand or when something failed.
// Ownership: owns the checks' functions, which must outlive it.
// Threads:   thread-safe once the checks were added.
// Failure:   none.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::kcp {

struct HealthAnswer {
  int status = 200;
  std::string body;
};

enum class Probes { kAll, kReadyzOnly, kNotReadyz };

class Health {
 public:
  // `ok` answers whether the check passes now.
  void Add(std::string name, Probes probes, std::function<bool()> ok);

  // `probe` is healthz, livez or readyz; `sub` one check's name or "". A check that does not exist is 404.
  HealthAnswer Answer(std::string_view probe, std::string_view sub, bool verbose,
                      const std::vector<std::string>& exclude) const;

 private:
  struct Check {
    std::string name;
    Probes probes;
    std::function<bool()> ok;
  };
  std::vector<Check> checks_;
};

}  // namespace lockkeeper::kcp
