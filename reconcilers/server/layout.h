// Layout: where the files of one Server lie on its host. The one place that names them.
//
//   DATA                              the agent's data directory (--data)
//   DATA/releases/SHA256              unpacked releases, shared by all Servers
//   DATA/servers/NS/NAME              base of one Server, or spec.layout.dataDir
//     slots/SLOT                      {root}: what the process of a slot owns; cleared only before a first install
//     shared                          {shared}: certificates, keys and tokens that both slots need (spec.seed.shared)
//     logs/SLOT                       current.log and rotated ones
//     backups                         snapshots of the store
//     current                         link to the active release
//   spec.layout.pathLink              a second link, to the active release's executable
//
// Threads: values. Failure: none; the paths are made by whoever writes below them.
#pragma once

#include <string>

#include "reconcilers/ports/records.h"

namespace lockkeeper::roll {

struct Layout {
  std::string base;
  std::string shared;
  std::string backups;
  std::string current;
  std::string releases;

  std::string Root(const std::string& slot) const { return base + "/slots/" + slot; }
  std::string Logs(const std::string& slot) const { return base + "/logs/" + slot; }
};

Layout LayoutOf(const std::string& data_dir, const ServerKey& key, const ServerSpec& spec);

// "lk-NS-SERVER-SLOT-INCARNATION": at most 200 bytes, safe as a file name.
std::string UnitName(const ServerKey& key, const std::string& slot, int64_t incarnation);

// The slot beside `slot`: blue and green.
std::string OtherSlot(const std::string& slot);
inline constexpr char kBlue[] = "blue";
inline constexpr char kGreen[] = "green";

}  // namespace lockkeeper::roll
