// Asker: questions that go on by themselves while those who asked do something else.
//
// Purpose:   a pass over a Server waits for an answer no longer than its patience. A question that takes longer goes
//            on under its own deadline, and who asks the same again gets its answer instead of a second question. So a
//            peer that is slow is still heard, and one that hangs keeps no pass from seeing what happened meanwhile.
//            Peers that were slow last time share half of the threads: a score of them that hang hold up no other.
// Ownership: owns its threads, as many as questions were under way at once, at most 16; borrows the clock. The
//            destructor waits for what is under way: cancel that first.
// Threads:   thread-safe.
// Failure:   kBusy: no answer yet, which says nothing of what was asked. Everything else is the answer's own.
#pragma once

#include <any>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "api/base/status.h"
#include "api/base/sync.h"
#include "api/base/time.h"

namespace lockkeeper::peer {

class Asker {
 public:
  Asker(const Clock& clock, Duration patience);
  ~Asker();

  // `what` names the question and `whom` who is asked: same texts, same question. An answer that came while nobody
  // waited is given out once, if it is at most `keep` old, and an error at most half a second. R is a Status or a
  // Result.
  template <typename R>
  R Ask(const std::string& whom, const std::string& what, Duration keep, std::function<R()> call) LK_EXCLUDES(mutex_) {
    const std::any answer = Await(
        whom, what, keep, [call = std::move(call)] { return std::any(call()); },
        [](const std::any& any) { return CodeOf(std::any_cast<const R&>(any)); });
    if (answer.has_value()) return std::any_cast<const R&>(answer);
    return Status(Code::kBusy, what + (whom.empty() ? "" : " by " + whom) + ": no answer yet");
  }

 private:
  struct Question {
    std::string whom;
    std::function<std::any()> call;
    std::any answer;  // once it has landed
    bool landed = false;
    Duration landed_at{};
    CondVar changed;
  };

  template <typename T>
  static Code CodeOf(const Result<T>& result) {
    return result.code();
  }
  static Code CodeOf(const Status& status) { return status.code(); }

  // Empty: not yet.
  std::any Await(const std::string& whom, const std::string& what, Duration keep, std::function<std::any()> call,
                 const std::function<Code(const std::any&)>& code) LK_EXCLUDES(mutex_);
  void Submit(const std::shared_ptr<Question>& question) LK_REQUIRES(mutex_);
  void Work() LK_EXCLUDES(mutex_);
  // The oldest that may be asked now: of slow peers no more than their share. nullptr: none.
  std::shared_ptr<Question> Next() LK_REQUIRES(mutex_);

  const Clock& clock_;
  const Duration patience_;
  Mutex mutex_;
  CondVar work_;
  bool stopping_ LK_GUARDED_BY(mutex_) = false;
  size_t idle_ LK_GUARDED_BY(mutex_) = 0;
  size_t slow_under_way_ LK_GUARDED_BY(mutex_) = 0;
  std::set<std::string> slow_ LK_GUARDED_BY(mutex_);  // whose last answer took long
  std::map<std::pair<std::string, std::string>, std::shared_ptr<Question>> asked_
      LK_GUARDED_BY(mutex_);  // under way, or landed and not fetched
  std::deque<std::shared_ptr<Question>> queue_ LK_GUARDED_BY(mutex_);
  std::vector<std::thread> workers_ LK_GUARDED_BY(mutex_);
};

}  // namespace lockkeeper::peer
