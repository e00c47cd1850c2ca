// A clock that stands still and a Lease in memory, for elections without time.
#pragma once

#include <optional>
#include <string>

#include "api/server/kcp/elector.h"

namespace lockkeeper::kcp {

class FakeClock : public Clock {
 public:
  Now Read() const override { return {Time(Seconds(1'700'000'000)) + elapsed_, elapsed_, "boot"}; }
  void Advance(Duration d) { elapsed_ += d; }
  Duration elapsed() const { return elapsed_; }

 private:
  Duration elapsed_{};
};

// The API server's side: one object with a uid that a deletion ends, and a version that each write raises.
struct FakeLease {
  struct Object {
    ElectionRecord record;
    int uid = 0;
    int version = 0;
  };
  std::optional<Object> object;
  int last_uid = 0;
  int last_version = 0;
  bool down = false;  // every call fails

  void Delete() { object.reset(); }
};

class FakeLeaseLock : public LeaseLock {
 public:
  explicit FakeLeaseLock(FakeLease& lease) : lease_(lease) {}

  Result<ElectionRecord> Get() override {
    if (lease_.down) return Status(Code::kUnavailable, "down");
    if (!lease_.object) return Status(Code::kNotFound, "no lease");
    seen_ = lease_.object;
    return seen_->record;
  }
  Status Create(const ElectionRecord& record) override {
    if (lease_.down) return Status(Code::kUnavailable, "down");
    if (lease_.object) return Status(Code::kAlreadyExists, "there is one");
    lease_.object = seen_ = FakeLease::Object{record, ++lease_.last_uid, ++lease_.last_version};
    return Status::Ok();
  }
  Status Update(const ElectionRecord& record) override {
    if (lease_.down) return Status(Code::kUnavailable, "down");
    if (!seen_) return Status(Code::kInternal, "call Get or Create first");
    if (!lease_.object || lease_.object->uid != seen_->uid || lease_.object->version != seen_->version) {
      return Status(Code::kConflict, "another version");
    }
    lease_.object->record = record;
    lease_.object->version = ++lease_.last_version;
    seen_ = lease_.object;
    return Status::Ok();
  }

 private:
  FakeLease& lease_;
  std::optional<FakeLease::Object> seen_;
};

}  // namespace lockkeeper::kcp
