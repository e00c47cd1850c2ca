// LogPump: moves what a process prints from its FIFO into rotated files.
//
// Purpose:   the reader of the FIFO. It never holds the process up: what cannot be written (full disk, folder gone)
//            is dropped and counted, and the count is noted in the log once writing works again.
// Ownership: owns its descriptors. Threads: one. Failure: none; the FIFO always gets emptied.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lockkeeper::shim {

class LogPump {
 public:
  // `fifo` is a read end, non-blocking; borrowed.
  LogPump(int fifo, std::string dir, int64_t max_bytes, int keep);
  ~LogPump();
  LogPump(const LogPump&) = delete;
  LogPump& operator=(const LogPump&) = delete;

  // Reads until the FIFO is empty, at most `rounds` buffers of 16 KiB.
  void Pump(int rounds);

 private:
  void Write(std::string_view data);
  bool Append(std::string_view data);
  bool OpenCurrent();
  void Rotate();

  int fifo_;
  std::string dir_;
  int64_t max_bytes_;
  int keep_;
  int file_ = -1;
  int64_t size_ = 0;
  int64_t dropped_ = 0;
};

}  // namespace lockkeeper::shim
