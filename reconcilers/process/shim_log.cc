#include "reconcilers/process/shim_log.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "reconcilers/process/shim_protocol.h"

namespace lockkeeper::shim {

LogPump::LogPump(int fifo, std::string dir, int64_t max_bytes, int keep)
    : fifo_(fifo), dir_(std::move(dir)), max_bytes_(max_bytes < 4096 ? 4096 : max_bytes), keep_(keep < 0 ? 0 : keep) {}

LogPump::~LogPump() {
  if (file_ >= 0) close(file_);
}

void LogPump::Pump(int rounds) {
  static char buffer[16 << 10];
  for (int i = 0; i < rounds; ++i) {
    const ssize_t n = read(fifo_, buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    Write(std::string_view(buffer, static_cast<size_t>(n)));
  }
}

void LogPump::Write(std::string_view data) {
  if (file_ < 0 && !OpenCurrent()) {
    dropped_ += static_cast<int64_t>(data.size());
    return;
  }
  if (size_ > 0 && size_ + static_cast<int64_t>(data.size()) > max_bytes_) {
    // The old file ends with a whole line where there is one.
    const size_t cut = data.rfind('\n', static_cast<size_t>(max_bytes_ > size_ ? max_bytes_ - size_ : 0));
    if (cut != std::string_view::npos) {
      if (!Append(data.substr(0, cut + 1))) dropped_ += static_cast<int64_t>(cut + 1);
      data.remove_prefix(cut + 1);
    }
    Rotate();
    if (file_ < 0 && !OpenCurrent()) {
      dropped_ += static_cast<int64_t>(data.size());
      return;
    }
  }
  if (dropped_ > 0) {
    char note[96];
    const int n = snprintf(note, sizeof note, "[slot-shim: %lld bytes of output were dropped]\n",
                           static_cast<long long>(dropped_));
    if (Append(std::string_view(note, static_cast<size_t>(n)))) dropped_ = 0;
  }
  if (!Append(data)) dropped_ += static_cast<int64_t>(data.size());
}

bool LogPump::Append(std::string_view data) {
  while (!data.empty()) {
    const ssize_t n = write(file_, data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return false;
    size_ += n;
    data.remove_prefix(static_cast<size_t>(n));
  }
  return true;
}

bool LogPump::OpenCurrent() {
  file_ = open((dir_ + "/" + kLogFile).c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (file_ < 0) return false;
  struct stat st = {};
  size_ = fstat(file_, &st) == 0 ? st.st_size : 0;
  return true;
}

void LogPump::Rotate() {
  close(file_);
  file_ = -1;
  const std::string current = dir_ + "/" + kLogFile;
  if (keep_ == 0) {
    unlink(current.c_str());
    return;
  }
  for (int i = keep_ - 1; i >= 1; --i) {
    rename((current + "." + std::to_string(i)).c_str(), (current + "." + std::to_string(i + 1)).c_str());
  }
  rename(current.c_str(), (current + ".1").c_str());
}

}  // namespace lockkeeper::shim
