// HTTP/1.1 on the wire, as server and client both need it: heads and bodies, read strictly.
//
// Purpose:   take a head and a body off a Channel. What is ambiguous (two lengths, length and chunks, bare line
//            feeds in a head) is refused, since a front in between may have read it the other way.
// Ownership: WireReader borrows its Channel and keeps bytes that came early.
// Threads:   one thread at a time.
// Failure:   kInvalid (not HTTP), kExhausted (beyond a limit), and what Channel answers.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "api/base/status.h"
#include "api/transport/channel.h"

namespace lockkeeper {

using HeaderMap = std::multimap<std::string, std::string>;  // names lower-cased

struct WireHead {
  std::string start_line;
  HeaderMap headers;

  // First value, or "".
  std::string Header(std::string_view lower_case_name) const;
  // Whether the comma-separated lists under that name hold `token`, in any case.
  bool HasToken(std::string_view lower_case_name, std::string_view token) const;
};

struct Framing {
  enum class Kind { kNone, kLength, kChunked, kUntilClose };
  Kind kind = Kind::kNone;
  uint64_t length = 0;
};

// Of a request: without a length there is no body. Of an answer: without one it lasts until the close.
Result<Framing> FramingOf(const WireHead& head, bool is_response);

class WireReader {
 public:
  explicit WireReader(Channel& channel) : channel_(channel) {}

  // Bytes already here, ahead of the next read.
  bool HasBuffered() const { return position_ < buffer_.size(); }
  // The next head, blank line included. `any` becomes true with its first byte. Empty lines before it are
  // skipped. kUnavailable "closed" when the peer ends before the first byte.
  Result<WireHead> ReadHead(size_t max_bytes, const Patience& patience, bool* any);
  // Hands out the body's bytes as they come; `on_data` answers whether to go on. True when the body was read
  // to its end, false when on_data stopped it.
  Result<bool> ReadBody(const Framing& framing, const Patience& patience,
                        const std::function<bool(std::string_view)>& on_data);
  // Gives the buffer's memory back while nothing is in it.
  void Shrink();
  size_t buffered() const { return buffer_.size() - position_; }

 private:
  // More bytes into the buffer; false at the end of the stream.
  Result<bool> Fill(const Patience& patience);
  Result<std::string> ReadLine(size_t max_bytes, const Patience& patience);
  Result<bool> ReadExactly(uint64_t size, const Patience& patience,
                           const std::function<bool(std::string_view)>& on_data);

  Channel& channel_;
  std::string buffer_;
  size_t position_ = 0;
};

std::string LowerCase(std::string_view text);
bool EqualsIgnoreCase(std::string_view a, std::string_view b);

}  // namespace lockkeeper
