#include "api/transport/http_wire.h"

#include <algorithm>
#include <charconv>

namespace lockkeeper {

namespace {

constexpr size_t kReadSize = 16u << 10;  // one TLS record
constexpr size_t kMaxChunkLine = 4096;
constexpr size_t kMaxTrailers = 16u << 10;

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool IsToken(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return c > ' ' && c < 0x7f && std::string_view("()<>@,;:\\\"/[]?={}").find(c) == std::string_view::npos;
  });
}

Status NotHttp(std::string_view why) { return {Code::kInvalid, "not HTTP/1.1: " + std::string(why)}; }

Status CutInBody() { return {Code::kUnavailable, "the connection was cut inside a body"}; }

}  // namespace

std::string LowerCase(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

bool EqualsIgnoreCase(std::string_view a, std::string_view b) {
  return a.size() == b.size() && LowerCase(a) == LowerCase(b);
}

std::string WireHead::Header(std::string_view lower_case_name) const {
  const auto it = headers.find(std::string(lower_case_name));
  return it == headers.end() ? std::string() : it->second;
}

bool WireHead::HasToken(std::string_view lower_case_name, std::string_view token) const {
  const auto [begin, end] = headers.equal_range(std::string(lower_case_name));
  for (auto it = begin; it != end; ++it) {
    std::string_view rest = it->second;
    while (true) {
      const size_t comma = rest.find(',');
      if (EqualsIgnoreCase(Trim(rest.substr(0, comma)), token)) return true;
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  return false;
}

Result<Framing> FramingOf(const WireHead& head, bool is_response) {
  Framing out;
  const size_t lengths = head.headers.count("content-length");
  const size_t codings = head.headers.count("transfer-encoding");
  if (codings > 0) {
    if (lengths > 0) return NotHttp("both Content-Length and Transfer-Encoding");
    if (codings > 1 || !EqualsIgnoreCase(Trim(head.Header("transfer-encoding")), "chunked")) {
      return NotHttp("Transfer-Encoding other than chunked");
    }
    out.kind = Framing::Kind::kChunked;
    return out;
  }
  if (lengths == 0) {
    out.kind = is_response ? Framing::Kind::kUntilClose : Framing::Kind::kNone;
    return out;
  }
  if (lengths > 1) return NotHttp("more than one Content-Length");
  const std::string text = head.Header("content-length");
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.length);
  if (error != std::errc() || end != text.data() + text.size()) return NotHttp("Content-Length is no number");
  out.kind = out.length > 0 ? Framing::Kind::kLength : Framing::Kind::kNone;
  return out;
}

void WireReader::Shrink() {
  if (HasBuffered()) return;
  position_ = 0;
  std::string().swap(buffer_);
}

Result<bool> WireReader::Fill(const Patience& patience) {
  if (position_ == buffer_.size()) {
    buffer_.clear();
    position_ = 0;
    if (buffer_.capacity() > 4 * kReadSize) buffer_.shrink_to_fit();
  }
  const size_t old = buffer_.size();
  buffer_.resize(old + kReadSize);
  auto n = channel_.Read(buffer_.data() + old, kReadSize, patience);
  buffer_.resize(old + (n.ok() ? *n : 0));
  if (!n.ok()) return n.status();
  return *n > 0;
}

Result<WireHead> WireReader::ReadHead(size_t max_bytes, const Patience& patience, bool* any) {
  *any = HasBuffered();
  size_t scanned = position_;
  size_t end = std::string::npos;
  while (true) {
    while (position_ + 1 < buffer_.size() && buffer_[position_] == '\r' && buffer_[position_ + 1] == '\n')
      position_ += 2;
    scanned = std::max(scanned, position_);
    end = buffer_.find("\r\n\r\n", scanned > position_ + 3 ? scanned - 3 : position_);
    if (end != std::string::npos) break;
    if (buffer_.size() - position_ > max_bytes) {
      return Status(Code::kExhausted, "headers of more than " + std::to_string(max_bytes) + " bytes");
    }
    scanned = buffer_.size() - position_;  // relative: Fill may move the start
    LK_ASSIGN_OR_RETURN(const bool more, Fill(patience));
    scanned += position_;
    if (!more) {
      return Status(Code::kUnavailable,
                    *any ? "the connection was cut inside the headers" : "the peer closed the connection");
    }
    *any = true;
  }
  if (end - position_ > max_bytes) {
    return Status(Code::kExhausted, "headers of more than " + std::to_string(max_bytes) + " bytes");
  }
  std::string_view text(buffer_.data() + position_, end + 2 - position_);
  WireHead head;
  bool first = true;
  while (!text.empty()) {
    const size_t eol = text.find("\r\n");
    const std::string_view line = text.substr(0, eol);
    text.remove_prefix(eol + 2);
    if (line.find_first_of(std::string_view("\r\n\0", 3)) != std::string_view::npos) {
      return NotHttp("a control character in a header line");
    }
    if (first) {
      head.start_line = std::string(line);
      first = false;
      continue;
    }
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || !IsToken(line.substr(0, colon)))
      return NotHttp("a header line without a name");
    head.headers.emplace(LowerCase(line.substr(0, colon)), Trim(line.substr(colon + 1)));
  }
  position_ = end + 4;
  return head;
}

Result<std::string> WireReader::ReadLine(size_t max_bytes, const Patience& patience) {
  while (true) {
    const size_t eol = buffer_.find("\r\n", position_);
    if (eol != std::string::npos) {
      std::string line = buffer_.substr(position_, eol - position_);
      position_ = eol + 2;
      return line;
    }
    if (buffered() > max_bytes) return NotHttp("a chunk line without an end");
    LK_ASSIGN_OR_RETURN(const bool more, Fill(patience));
    if (!more) return CutInBody();
  }
}

Result<bool> WireReader::ReadExactly(uint64_t size, const Patience& patience,
                                     const std::function<bool(std::string_view)>& on_data) {
  while (size > 0) {
    if (!HasBuffered()) {
      LK_ASSIGN_OR_RETURN(const bool more, Fill(patience));
      if (!more) return CutInBody();
    }
    const size_t n = static_cast<size_t>(std::min<uint64_t>(size, buffered()));
    const std::string_view piece(buffer_.data() + position_, n);
    position_ += n;
    size -= n;
    if (!on_data(piece)) return false;
  }
  return true;
}

Result<bool> WireReader::ReadBody(const Framing& framing, const Patience& patience,
                                  const std::function<bool(std::string_view)>& on_data) {
  switch (framing.kind) {
    case Framing::Kind::kNone: return true;
    case Framing::Kind::kLength: return ReadExactly(framing.length, patience, on_data);
    case Framing::Kind::kUntilClose:
      while (true) {
        if (!HasBuffered()) {
          LK_ASSIGN_OR_RETURN(const bool more, Fill(patience));
          if (!more) return true;
        }
        const std::string_view piece(buffer_.data() + position_, buffered());
        position_ = buffer_.size();
        if (!on_data(piece)) return false;
      }
    case Framing::Kind::kChunked: break;
  }
  while (true) {
    LK_ASSIGN_OR_RETURN(const std::string line, ReadLine(kMaxChunkLine, patience));
    const std::string_view digits = Trim(std::string_view(line).substr(0, line.find(';')));
    uint64_t size = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) return NotHttp("a chunk size that is no number");
    if (size == 0) break;
    LK_ASSIGN_OR_RETURN(const bool on, ReadExactly(size, patience, on_data));
    if (!on) return false;
    LK_ASSIGN_OR_RETURN(const std::string rest, ReadLine(2, patience));
    if (!rest.empty()) return NotHttp("a chunk longer than its size");
  }
  size_t trailers = 0;
  while (true) {
    LK_ASSIGN_OR_RETURN(const std::string line, ReadLine(kMaxChunkLine, patience));
    if (line.empty()) return true;
    trailers += line.size();
    if (trailers > kMaxTrailers) return NotHttp("trailers without an end");
  }
}

}  // namespace lockkeeper
