#include "api/base/status.h"

#include <cstdio>

namespace lockkeeper {

std::string_view CodeName(Code code) {
  switch (code) {
    case Code::kOk: return "Ok";
    case Code::kInvalid: return "Invalid";
    case Code::kNotFound: return "NotFound";
    case Code::kAlreadyExists: return "AlreadyExists";
    case Code::kConflict: return "Conflict";
    case Code::kExpired: return "Expired";
    case Code::kPrecondition: return "Precondition";
    case Code::kUnauthorized: return "Unauthorized";
    case Code::kForbidden: return "Forbidden";
    case Code::kUnavailable: return "Unavailable";
    case Code::kTimeout: return "Timeout";
    case Code::kBusy: return "Busy";
    case Code::kExhausted: return "Exhausted";
    case Code::kCorrupt: return "Corrupt";
    case Code::kUnsupported: return "Unsupported";
    case Code::kCancelled: return "Cancelled";
    case Code::kInternal: return "Internal";
  }
  Die(__FILE__, __LINE__, "unknown Code");
}

Disposition DispositionOf(Code code) {
  switch (code) {
    case Code::kConflict:
    case Code::kExpired:
    case Code::kPrecondition:
    case Code::kAlreadyExists: return Disposition::kReobserve;
    case Code::kInvalid:
    case Code::kUnsupported:
    case Code::kCorrupt: return Disposition::kStalled;
    case Code::kCancelled: return Disposition::kStop;
    case Code::kOk:
    case Code::kNotFound:
    case Code::kUnauthorized:
    case Code::kForbidden:
    case Code::kUnavailable:
    case Code::kTimeout:
    case Code::kBusy:
    case Code::kExhausted:
    case Code::kInternal: return Disposition::kRetry;
  }
  Die(__FILE__, __LINE__, "unknown Code");
}

Status Status::Annotate(std::string_view attempt) const {
  if (ok()) return *this;
  std::string text(attempt);
  text += ": ";
  text += message_;
  return {code_, std::move(text)};
}

std::string Status::ToString() const {
  std::string text(CodeName(code_));
  if (!message_.empty()) text += ": " + message_;
  return text;
}

void Die(const char* file, int line, std::string_view what) {
  std::fprintf(stderr, "%s:%d: %.*s\n", file, line, static_cast<int>(what.size()), what.data());
  std::fflush(stderr);
  std::abort();
}

}  // namespace lockkeeper
