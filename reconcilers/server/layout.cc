#include "reconcilers/server/layout.h"

namespace lockkeeper::roll {

Layout LayoutOf(const std::string& data_dir, const ServerKey& key, const ServerSpec& spec) {
  Layout layout;
  layout.base = spec.layout.data_dir.empty() ? data_dir + "/servers/" + key.ns + "/" + key.name : spec.layout.data_dir;
  layout.shared = spec.seed && !spec.seed->shared.empty() ? spec.seed->shared : layout.base + "/shared";
  layout.backups = layout.base + "/backups";
  layout.current = layout.base + "/current";
  layout.releases = data_dir + "/releases";
  return layout;
}

std::string UnitName(const ServerKey& key, const std::string& slot, int64_t incarnation) {
  const std::string tail = "-" + slot + "-" + std::to_string(incarnation);
  std::string head = "lk-" + key.ns + "-" + key.name;
  constexpr size_t kMax = 200;
  if (head.size() + tail.size() > kMax) head.resize(kMax - tail.size());
  return head + tail;
}

std::string OtherSlot(const std::string& slot) { return slot == kBlue ? kGreen : kBlue; }

}  // namespace lockkeeper::roll
