#include "api/server/kcp/health.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::kcp {

void Health::Add(std::string name, Probes probes, std::function<bool()> ok) {
  checks_.push_back({std::move(name), probes, std::move(ok)});
}

HealthAnswer Health::Answer(std::string_view probe, std::string_view sub, bool verbose,
                            const std::vector<std::string>& exclude) const {
  const bool readyz = probe == "readyz";
  std::string lines;
  bool failed = false;
  bool found = false;
  for (const Check& check : checks_) {
    if (check.probes == (readyz ? Probes::kNotReadyz : Probes::kReadyzOnly)) continue;
    if (!sub.empty() && check.name != sub) continue;
    found = true;
    if (std::find(exclude.begin(), exclude.end(), check.name) != exclude.end()) {
      lines += "[+]" + check.name + " excluded: ok\n";
    } else if (check.ok()) {
      lines += "[+]" + check.name + " ok\n";
    } else {
      failed = true;
      lines += "[-]" + check.name + " failed: reason withheld\n";
    }
  }
  if (!sub.empty()) {
    if (!found) return {404, "404 page not found\n"};
    return failed ? HealthAnswer{500, "internal server error: " + std::string(sub) + " check failed\n"}
                  : HealthAnswer{200, "ok"};
  }
  if (failed) return {500, lines + std::string(probe) + " check failed\n"};
  if (verbose) return {200, lines + std::string(probe) + " check passed\n"};
  return {200, "ok"};
}

}  // namespace lockkeeper::kcp
