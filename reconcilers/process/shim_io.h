// Shim I/O: the few system helpers that a slot-shim and its driver share, free of any library.
//
// Purpose:   whole files in a run folder, start times from /proc, the lock that says "a shim lives".
// Ownership: descriptors given are borrowed; descriptors answered are the caller's.
// Threads:   thread-safe. Failure: false or -1 with errno.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "reconcilers/process/shim_protocol.h"

namespace lockkeeper::shim {

// Whole content of a file below `dir`.
bool ReadAt(int dir, const char* name, std::string* out);
// Reads and parses a record; false when absent or not whole.
bool ReadRecordAt(int dir, const char* name, Record* out);
// "NAME.tmp", fsync, rename. A NAME.tmp that stands is written over in place, so space that ReserveAt took is used on
// a full disk. The folder is not synced: a record is whole or not there after a power cut, and of an earlier boot
// nothing runs any more; a sync more would only delay the start (some milliseconds each).
bool WriteRecordAt(int dir, const char* name, const Record& record);
// Makes NAME.tmp with room for a record of up to 1 KiB.
bool ReserveAt(int dir, const char* name);

// Field 22 of /proc/PID/stat, 0 when there is no such process. A zombie counts as gone: 0.
uint64_t StartTicks(pid_t pid);
// Session of a process, or -1.
pid_t SessionOf(pid_t pid);
// Direct children of all threads of a process.
std::vector<pid_t> ChildrenOf(pid_t pid);
// Sends SIGKILL to every process of a session.
void KillSession(pid_t session);
std::string ReadBootId();
int64_t WallMicros();
int PidfdOpen(pid_t pid);
// pidfd_send_signal; -1 with errno.
int PidfdSignal(int pidfd, int signal);

// Takes the write lock on the whole file (an open-file-description lock: held as long as any copy of the
// descriptor is open, never given to another process by fork alone). False with EAGAIN when another has it.
bool LockFile(int fd);
// Whether another open file holds the lock. Takes nothing.
bool IsLockedByOther(int fd);

}  // namespace lockkeeper::shim
