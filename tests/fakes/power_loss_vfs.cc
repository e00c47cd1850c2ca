#include "tests/fakes/power_loss_vfs.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <random>
#include <vector>

#include "api/base/unique_fd.h"

namespace lockkeeper::fakes {

namespace {
constexpr int64_t kSector = 512;
}  // namespace

// What a file was at its last sync, as far as it differs from what it is.
struct Unsynced {
  std::map<int64_t, std::string> sectors;  // number -> bytes at the last sync (short at the end of the file)
  int64_t size = 0;                        // at the last sync
  bool ever_synced = false;
};

struct PowerLossVfs::State {
  std::string name;
  sqlite3_vfs vfs{};
  sqlite3_vfs* real = nullptr;
  std::mutex mutex;
  std::map<std::string, Unsynced> files;
  bool off = false;
  bool fail_syncs = false;
  int64_t room = -1;
  int syncs = 0;
};

namespace {

using State = PowerLossVfs::State;

struct File {
  sqlite3_file base;
  State* state;
  std::string* path;
  sqlite3_file* real;  // in the memory behind this struct
};

File* Of(sqlite3_file* file) { return reinterpret_cast<File*>(file); }

int64_t SizeOf(sqlite3_file* real) {
  sqlite3_int64 size = 0;
  real->pMethods->xFileSize(real, &size);
  return size;
}

// Notes the sectors of [offset, offset + amount) as they are before they change.
void Remember(File* file, int64_t offset, int64_t amount) {
  Unsynced& unsynced = file->state->files[*file->path];
  const int64_t size = SizeOf(file->real);
  for (int64_t sector = offset / kSector; sector * kSector < offset + amount; ++sector) {
    if (unsynced.sectors.count(sector) > 0) continue;
    const int64_t from = sector * kSector;
    const int64_t end = std::min(std::min(from + kSector, size), unsynced.size);
    std::string bytes(static_cast<size_t>(std::max<int64_t>(0, end - from)), '\0');
    if (!bytes.empty()) file->real->pMethods->xRead(file->real, bytes.data(), static_cast<int>(bytes.size()), from);
    unsynced.sectors.emplace(sector, std::move(bytes));
  }
}

int Close(sqlite3_file* f) {
  File* file = Of(f);
  const int rc = file->real->pMethods->xClose(file->real);
  delete file->path;
  return rc;
}

int Read(sqlite3_file* f, void* buffer, int amount, sqlite3_int64 offset) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xRead(real, buffer, amount, offset);
}

int Write(sqlite3_file* f, const void* buffer, int amount, sqlite3_int64 offset) {
  File* file = Of(f);
  std::lock_guard<std::mutex> lock(file->state->mutex);
  if (file->state->off) return SQLITE_IOERR_WRITE;
  const int64_t growth = std::max<int64_t>(0, offset + amount - SizeOf(file->real));
  if (file->state->room >= 0 && growth > file->state->room) return SQLITE_FULL;
  Remember(file, offset, amount);
  const int rc = file->real->pMethods->xWrite(file->real, buffer, amount, offset);
  if (rc == SQLITE_OK && file->state->room >= 0) file->state->room -= growth;
  return rc;
}

int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  File* file = Of(f);
  std::lock_guard<std::mutex> lock(file->state->mutex);
  if (file->state->off) return SQLITE_IOERR_TRUNCATE;
  const int64_t old = SizeOf(file->real);
  if (old > size) Remember(file, size, old - size);
  return file->real->pMethods->xTruncate(file->real, size);
}

int Sync(sqlite3_file* f, int flags) {
  File* file = Of(f);
  std::lock_guard<std::mutex> lock(file->state->mutex);
  ++file->state->syncs;
  if (file->state->off || file->state->fail_syncs) return SQLITE_IOERR_FSYNC;
  // The real sync is left out: what counts here is what this VFS remembers.
  (void)flags;
  Unsynced& unsynced = file->state->files[*file->path];
  unsynced.sectors.clear();
  unsynced.size = SizeOf(file->real);
  unsynced.ever_synced = true;
  return SQLITE_OK;
}

int FileSize(sqlite3_file* f, sqlite3_int64* size) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xFileSize(real, size);
}
int Lock(sqlite3_file* f, int level) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xLock(real, level);
}
int Unlock(sqlite3_file* f, int level) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xUnlock(real, level);
}
int CheckReservedLock(sqlite3_file* f, int* out) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xCheckReservedLock(real, out);
}
int FileControl(sqlite3_file* f, int op, void* arg) {
  // A size hint would grow the file behind this VFS's back.
  if (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE) return SQLITE_OK;
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xFileControl(real, op, arg);
}
// No promise about torn or reordered sectors.
int SectorSize(sqlite3_file*) { return kSector; }
int DeviceCharacteristics(sqlite3_file*) { return 0; }

int ShmMap(sqlite3_file* f, int page, int size, int extend, void volatile** out) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xShmMap(real, page, size, extend, out);
}
int ShmLock(sqlite3_file* f, int offset, int n, int flags) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xShmLock(real, offset, n, flags);
}
void ShmBarrier(sqlite3_file* f) {
  sqlite3_file* real = Of(f)->real;
  real->pMethods->xShmBarrier(real);
}
int ShmUnmap(sqlite3_file* f, int remove) {
  sqlite3_file* real = Of(f)->real;
  return real->pMethods->xShmUnmap(real, remove);
}

const sqlite3_io_methods kMethods = {2,
                                     Close,
                                     Read,
                                     Write,
                                     Truncate,
                                     Sync,
                                     FileSize,
                                     Lock,
                                     Unlock,
                                     CheckReservedLock,
                                     FileControl,
                                     SectorSize,
                                     DeviceCharacteristics,
                                     ShmMap,
                                     ShmLock,
                                     ShmBarrier,
                                     ShmUnmap,
                                     nullptr,
                                     nullptr};

State* StateOf(sqlite3_vfs* vfs) { return static_cast<State*>(vfs->pAppData); }

int Open(sqlite3_vfs* vfs, const char* path, sqlite3_file* f, int flags, int* out_flags) {
  State* state = StateOf(vfs);
  File* file = Of(f);
  file->base.pMethods = nullptr;
  file->state = state;
  file->real = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + sizeof(File));
  const int rc = state->real->xOpen(state->real, path, file->real, flags, out_flags);
  if (rc != SQLITE_OK) return rc;
  file->path = new std::string(path == nullptr ? "" : path);
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    if (state->files.count(*file->path) == 0) {
      Unsynced& fresh = state->files[*file->path];
      fresh.size = SizeOf(file->real);
      fresh.ever_synced = fresh.size > 0;
    }
  }
  file->base.pMethods = &kMethods;
  return SQLITE_OK;
}

int Delete(sqlite3_vfs* vfs, const char* path, int sync_dir) {
  State* state = StateOf(vfs);
  {
    std::lock_guard<std::mutex> lock(state->mutex);
    if (state->off) return SQLITE_IOERR_DELETE;
    state->files.erase(path);
  }
  return state->real->xDelete(state->real, path, sync_dir);
}

}  // namespace

PowerLossVfs::PowerLossVfs(std::string name) : state_(std::make_unique<State>()) {
  state_->name = std::move(name);
  state_->real = sqlite3_vfs_find(nullptr);
  state_->vfs = *state_->real;
  state_->vfs.pNext = nullptr;
  state_->vfs.zName = state_->name.c_str();
  state_->vfs.szOsFile = static_cast<int>(sizeof(File)) + state_->real->szOsFile;
  state_->vfs.pAppData = state_.get();
  state_->vfs.xOpen = Open;
  state_->vfs.xDelete = Delete;
  // The real VFS finds its own data by the pointer it is given, so hand it the real one.
  state_->vfs.xAccess = [](sqlite3_vfs* vfs, const char* path, int flags, int* out) {
    State* state = StateOf(vfs);
    return state->real->xAccess(state->real, path, flags, out);
  };
  state_->vfs.xFullPathname = [](sqlite3_vfs* vfs, const char* path, int n, char* out) {
    State* state = StateOf(vfs);
    return state->real->xFullPathname(state->real, path, n, out);
  };
  sqlite3_vfs_register(&state_->vfs, 0);
}

PowerLossVfs::~PowerLossVfs() { sqlite3_vfs_unregister(&state_->vfs); }

const std::string& PowerLossVfs::name() const { return state_->name; }

void PowerLossVfs::CutPower() {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->off = true;
}

void PowerLossVfs::SetRoom(int64_t bytes) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->room = bytes;
}

void PowerLossVfs::FailSyncs(bool fail) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->fail_syncs = fail;
}

int PowerLossVfs::syncs() const {
  std::lock_guard<std::mutex> lock(state_->mutex);
  return state_->syncs;
}

int PowerLossVfs::LoseUnsynced(uint64_t seed) {
  std::lock_guard<std::mutex> lock(state_->mutex);
  std::mt19937_64 random(seed);
  int lost = 0;
  for (auto& [path, unsynced] : state_->files) {
    if (path.empty()) continue;
    if (!unsynced.ever_synced) {
      // Its entry in the folder was never synced either.
      if (random() % 2 == 0) ::unlink(path.c_str());
      continue;
    }
    UniqueFd fd(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (!fd) continue;
    for (const auto& [sector, bytes] : unsynced.sectors) {
      if (random() % 2 == 0) continue;
      ++lost;
      if (!bytes.empty() && ::pwrite(fd.get(), bytes.data(), bytes.size(), sector * kSector) < 0) ++lost;
    }
    // The new length may have reached the disk or not.
    if (random() % 2 == 0 && ::ftruncate(fd.get(), unsynced.size) != 0) ++lost;
    ::unlink((path + "-shm").c_str());
  }
  state_->files.clear();
  return lost;
}

}  // namespace lockkeeper::fakes
