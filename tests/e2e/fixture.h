// E2e: a lockkeeper with the samples' Servers, times of the rolled servers scaled to a tenth.
//
// Purpose:   what the end-to-end tests share. Every wait is for a condition and has a deadline.
// Ownership: owns its Lab; nothing runs on after it.
// Threads:   one thread.
// Failure:   gtest assertions in the test that calls; Status where a test looks at the error.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "api/types/front.h"
#include "api/types/roll.h"
#include "api/types/server.h"
#include "api/types/upgrade.h"
#include "controller/typed.h"
#include "tests/support/lab.h"
#include "tests/support/wait.h"

namespace lockkeeper {

template <typename T>
const Condition* FindOf(const T& object, const std::string& type) {
  for (const Condition& c : object.status.conditions) {
    if (c.type == type) return &c;
  }
  return nullptr;
}

// Stalled, and its message has `word`.
template <typename T>
bool SaysStalled(const T& object, const std::string& word) {
  const Condition* c = FindOf(object, "Stalled");
  return c != nullptr && c->status == ConditionStatus::kTrue && c->message.find(word) != std::string::npos;
}

template <typename T>
bool SaysReady(const T& object) {
  const Condition* c = FindOf(object, "Ready");
  return c != nullptr && c->status == ConditionStatus::kTrue;
}

class E2e : public ::testing::Test {
 protected:
  static constexpr char kOld[] = "v0.32.3";
  static constexpr char kNew[] = "v0.33.0";

  explicit E2e(bool split = false);
  void TearDown() override;

  // Applies a sample (a path below manifests/samples), addresses moved, times scaled, and `edit` done to each object.
  Status Apply(const std::string& sample, const std::function<void(Json&)>& edit = {});
  Status ApplyObject(const Json& object);
  // `up` with the sample Server kcp (and single) installed and Ready.
  void Install(bool single = false, const std::function<void(Json&)>& edit = {});
  Status MakeUpgrade(const std::string& name, const std::string& version,
                     const std::function<void(Upgrade&)>& edit = {});

  // A manager that could not renew its Lease for 10 s ends, as it must; who runs it starts it again. Of a split lab.
  Status StartManagerAgain();

  // Until the predicate holds of the object as the API has it; kTimeout with what it last was.
  template <typename T>
  Result<T> Await(const std::string& name, const std::function<bool(const T&)>& done, double seconds = 60);
  Result<Upgrade> AwaitFinished(const std::string& upgrade, double seconds = 90);
  void ExpectSucceeds(const std::string& upgrade);
  Result<Roll> RollOf(const Upgrade& upgrade);
  // A merge patch.
  template <typename T>
  Status Patch(const std::string& name, const Json& patch) {
    return lab_.api().Patch(ResourceOf<T>(), {"default", name}, PatchType::kMerge, patch, "").status();
  }
  // The step of the operation in flight by the agent's socket, "" for none; an error while nobody answers.
  Result<std::string> StepNow();
  // One of the steps is under way; name several where one alone may pass between two looks.
  bool AwaitStep(const std::vector<std::string>& wanted);
  // The ledger's outcomes by the agent's socket, newest first.
  std::vector<Json> History();
  // Pid of the one process whose command line has all of `words`; 0 for none.
  pid_t FindProcess(const std::vector<std::string>& words) const;
  // Load through the front of `server` while `operation` runs; answers what became of every request.
  load::LoadResult UnderLoad(const std::string& server, const std::function<void()>& operation);
  static void ExpectNothingLost(const load::LoadResult& load);
  // What the rolled servers' own journals say of two leaders or two reconcilers at once: nothing, or sentences.
  std::vector<std::string> Overlaps(const std::string& server) const;

  Lab lab_;
  std::vector<std::pair<std::string, std::string>> replace_;
};

template <typename T>
Result<T> E2e::Await(const std::string& name, const std::function<bool(const T&)>& done, double seconds) {
  Result<T> object(Code::kNotFound, "never looked at");
  const bool met = WaitUntil(
      [&] {
        object = Get<T>(lab_.api(), {"default", name});
        return object.ok() && done(*object);
      },
      std::chrono::milliseconds(static_cast<int64_t>(seconds * 1000)));
  if (met) return object;
  return Status(Code::kTimeout, std::string(T::kKind) + " " + name + " is still: " +
                                    (object.ok() ? ToJson(object->status).Dump() : object.status().ToString()));
}

}  // namespace lockkeeper
