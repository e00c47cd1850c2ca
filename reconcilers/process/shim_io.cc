#include "reconcilers/process/shim_io.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>

namespace lockkeeper::shim {
namespace {

bool WriteAll(int fd, std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(fd, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool ReadToEnd(int fd, std::string* out) {
  out->clear();
  char buffer[4096];
  for (;;) {
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    if (n == 0) return true;
    out->append(buffer, static_cast<size_t>(n));
  }
}

// Text after the command name of /proc/PID/stat: from field 3 (state) on. The name may hold anything but is the
// last thing in parentheses.
bool StatFields(pid_t pid, std::string* out) {
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/stat", static_cast<int>(pid));
  std::string text;
  if (!ReadAt(AT_FDCWD, path, &text)) return false;
  const size_t paren = text.rfind(')');
  if (paren == std::string::npos || paren + 2 >= text.size()) return false;
  *out = text.substr(paren + 2);
  return true;
}

}  // namespace

bool ReadAt(int dir, const char* name, std::string* out) {
  const int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const bool ok = ReadToEnd(fd, out);
  const int error = errno;
  close(fd);
  errno = error;
  return ok;
}

bool ReadRecordAt(int dir, const char* name, Record* out) {
  std::string text;
  return ReadAt(dir, name, &text) && Record::Parse(text, out);
}

bool WriteRecordAt(int dir, const char* name, const Record& record) {
  const std::string temporary = std::string(name) + ".tmp";
  const int fd = openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const std::string text = record.Format();
  const bool ok = WriteAll(fd, text) && ftruncate(fd, static_cast<off_t>(text.size())) == 0 && fsync(fd) == 0 &&
                  renameat(dir, temporary.c_str(), dir, name) == 0;
  const int error = errno;
  close(fd);
  errno = error;
  return ok;
}

bool ReserveAt(int dir, const char* name) {
  const std::string temporary = std::string(name) + ".tmp";
  const int fd = openat(dir, temporary.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0) return false;
  const bool ok = posix_fallocate(fd, 0, 1024) == 0;
  close(fd);
  return ok;
}

uint64_t StartTicks(pid_t pid) {
  std::string fields;
  if (pid <= 0 || !StatFields(pid, &fields) || fields[0] == 'Z' || fields[0] == 'X') return 0;
  const char* p = fields.c_str();
  for (int field = 3; field < 22 && p != nullptr; ++field) {
    p = strchr(p, ' ');
    if (p != nullptr) ++p;
  }
  return p == nullptr ? 0 : strtoull(p, nullptr, 10);
}

pid_t SessionOf(pid_t pid) { return getsid(pid); }

std::vector<pid_t> ChildrenOf(pid_t pid) {
  std::vector<pid_t> out;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task", static_cast<int>(pid));
  DIR* tasks = opendir(path);
  if (tasks == nullptr) return out;
  while (const dirent* task = readdir(tasks)) {
    if (task->d_name[0] == '.') continue;
    const std::string name = std::string(path) + "/" + task->d_name + "/children";
    std::string text;
    if (!ReadAt(AT_FDCWD, name.c_str(), &text)) continue;
    const char* p = text.c_str();
    char* end = nullptr;
    for (long child = strtol(p, &end, 10); end != p; child = strtol(p, &end, 10)) {
      out.push_back(static_cast<pid_t>(child));
      p = end;
    }
  }
  closedir(tasks);
  return out;
}

void KillSession(pid_t session) {
  DIR* proc = opendir("/proc");
  if (proc == nullptr) return;
  while (const dirent* entry = readdir(proc)) {
    const pid_t pid = static_cast<pid_t>(strtol(entry->d_name, nullptr, 10));
    if (pid <= 1 || SessionOf(pid) != session) continue;
    // The pidfd is taken first and the session read again, so that a reused number is not hit.
    const int fd = PidfdOpen(pid);
    if (fd < 0) continue;
    if (SessionOf(pid) == session) PidfdSignal(fd, SIGKILL);
    close(fd);
  }
  closedir(proc);
}

std::string ReadBootId() {
  std::string text;
  if (!ReadAt(AT_FDCWD, "/proc/sys/kernel/random/boot_id", &text)) return {};
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

int64_t WallMicros() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<int64_t>(now.tv_sec) * 1000000 + now.tv_nsec / 1000;
}

int PidfdOpen(pid_t pid) { return static_cast<int>(syscall(SYS_pidfd_open, pid, 0)); }

int PidfdSignal(int pidfd, int signal) {
  return static_cast<int>(syscall(SYS_pidfd_send_signal, pidfd, signal, nullptr, 0));
}

bool LockFile(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_SETLK, &lock) == 0;
}

bool IsLockedByOther(int fd) {
  struct flock lock = {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

}  // namespace lockkeeper::shim
