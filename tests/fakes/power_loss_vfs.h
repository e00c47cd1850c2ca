// PowerLossVfs: an SQLite VFS whose files forget, at a power cut, what was not synced.
//
// Purpose:   proves that an answered write survives power loss: sectors written since the last sync of their file
//            may each be there or not afterwards, as on a disk with a cache. Also a disk that is full.
// Ownership: registered under its name while it lives; connections are closed before it goes.
// Threads:   thread-safe.
// Failure:   after CutPower() every write, sync and truncate of open connections answers SQLITE_IOERR and changes
//            nothing.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace lockkeeper::fakes {

class PowerLossVfs {
 public:
  explicit PowerLossVfs(std::string name);
  ~PowerLossVfs();
  PowerLossVfs(const PowerLossVfs&) = delete;
  PowerLossVfs& operator=(const PowerLossVfs&) = delete;

  const std::string& name() const;

  // From now on nothing reaches the disk.
  void CutPower();
  // After CutPower() and once all connections are closed: puts the files into one of the states that the cut may have
  // left. Each unsynced sector is kept or lost by `seed`. Answers how many sectors were lost.
  int LoseUnsynced(uint64_t seed);
  // Files may grow by this many bytes from now on, then SQLITE_FULL; below 0: no limit.
  void SetRoom(int64_t bytes);
  // Syncs answer SQLITE_IOERR_FSYNC.
  void FailSyncs(bool fail);
  // Syncs seen.
  int syncs() const;

  struct State;

 private:
  std::unique_ptr<State> state_;
};

}  // namespace lockkeeper::fakes
