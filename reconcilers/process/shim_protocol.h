// Shim protocol: what the driver and a slot-shim say to each other, in files and over a socket.
//
// Purpose:   the names of the files in a run folder, their line format, and the commands of the socket.
// Ownership: values. Included by the shim, so: no iostream, no JSON, no allocation beyond std::string.
// Threads:   pure functions. Failure: parsing answers false for text that is not whole.
//
// A run folder is RUN/UNIT/INVOCATION. One shim per unit lives: it holds RUN/UNIT/lock. The files of an invocation:
//   spec     written by the driver before the shim is spawned; never changed once the shim has started the process
//   sock     the shim's socket (SOCK_SEQPACKET, 0600)
//   out      a FIFO: standard output and error of the process. The process holds it read-write, so it gets no
//            SIGPIPE and no end-of-file when its shim dies; output waits there (1 MiB) for the next shim
//   started  written, and on disk, before the process may exec: unit, invocation, pid, ticks, boot, exec time
//   failed   written instead when the start is refused: errno, what was attempted, on which file
//   exit     written when the process and all its descendants are gone
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lockkeeper::shim {

inline constexpr char kLockFile[] = "lock";  // in the unit's folder
inline constexpr char kSpecFile[] = "spec";
inline constexpr char kSocketFile[] = "sock";
inline constexpr char kOutputFile[] = "out";
inline constexpr char kStartedFile[] = "started";
inline constexpr char kFailedFile[] = "failed";
inline constexpr char kExitFile[] = "exit";
inline constexpr char kLogFile[] = "current.log";  // in the log folder; rotated: current.log.1, .2 …

// Commands. Each is answered with one packet: a record whose first line is "state=…".
//   "go"        start the process, once; answers running, failed or exited as it then is
//   "status"    prepared, running, failed or exited, with the lines of that record
//   "stop N"    send signal N to the process and do not start it again (for restart=1)
//   "kill"      SIGKILL to the process and all its descendants; do not start it again
//   "cancel"    end a shim that waits for its go; refused (state=running) afterwards
inline constexpr size_t kMaxPacket = 64 << 10;
// A shim that never gets its go ends by itself after this; the driver then prepares a new one.
inline constexpr int kPreparedSeconds = 600;

// Back-off of restart=1, milliseconds: doubles from the first to the last, back to the first after a life that is no
// crash loop's. The last is short because clients wait meanwhile, in the listener's queue, and seldom for over 2 s; a
// process that dies at once costs some 20 ms of CPU a second.
class RestartBackoff {
 public:
  static constexpr int kFirst = 100;
  static constexpr int kLast = 1000;
  static constexpr int kSteadyLife = 2000;

  // How long to wait after a process that lived so long; 0 for one that could not be started.
  int AfterLife(int64_t lived) {
    if (lived >= kSteadyLife) next_ = kFirst;
    const int wait = next_;
    next_ = next_ * 2 > kLast ? kLast : next_ * 2;
    return wait;
  }

 private:
  int next_ = kFirst;
};

// Exit codes of the spawned process, before the shim has gone into its own session.
inline constexpr int kSpawnReady = 0;
inline constexpr int kSpawnLocked = 3;   // another shim of this unit lives
inline constexpr int kSpawnFailed = 4;   // `failed` says why, if it could be written
inline constexpr int kSpawnNothing = 5;  // the process of this run folder is gone: nothing to take over

// Lines "key=value"; a backslash and a newline in a value are written \\ and \n. The last line is "end=1".
class Record {
 public:
  void Add(std::string_view key, std::string_view value) { lines_.emplace_back(key, value); }
  void AddInt(std::string_view key, int64_t value) { lines_.emplace_back(key, std::to_string(value)); }

  std::string_view Get(std::string_view key) const {
    for (const auto& [k, v] : lines_) {
      if (k == key) return v;
    }
    return {};
  }
  int64_t GetInt(std::string_view key) const {
    const std::string_view v = Get(key);
    return v.empty() ? 0 : strtoll(std::string(v).c_str(), nullptr, 10);
  }
  std::vector<std::string> All(std::string_view key) const {
    std::vector<std::string> out;
    for (const auto& [k, v] : lines_) {
      if (k == key) out.push_back(v);
    }
    return out;
  }
  bool empty() const { return lines_.empty(); }

  std::string Format() const {
    std::string out;
    for (const auto& [k, v] : lines_) {
      out += k;
      out += '=';
      for (const char c : v) {
        if (c == '\n') {
          out += "\\n";
        } else if (c == '\\') {
          out += "\\\\";
        } else {
          out += c;
        }
      }
      out += '\n';
    }
    out += "end=1\n";
    return out;
  }

  // False when the text is cut short or a line has no '='.
  static bool Parse(std::string_view text, Record* out) {
    out->lines_.clear();
    while (!text.empty()) {
      const size_t nl = text.find('\n');
      if (nl == std::string_view::npos) return false;
      const std::string_view line = text.substr(0, nl);
      text.remove_prefix(nl + 1);
      if (line == "end=1") return true;
      const size_t eq = line.find('=');
      if (eq == std::string_view::npos) return false;
      std::string value;
      for (size_t i = eq + 1; i < line.size(); ++i) {
        if (line[i] == '\\' && i + 1 < line.size()) {
          ++i;
          value += line[i] == 'n' ? '\n' : line[i];
        } else {
          value += line[i];
        }
      }
      out->lines_.emplace_back(line.substr(0, eq), std::move(value));
    }
    return false;
  }

 private:
  std::vector<std::pair<std::string, std::string>> lines_;
};

}  // namespace lockkeeper::shim
