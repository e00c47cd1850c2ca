#include "reconcilers/peer/asker.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::peer {
namespace {

constexpr size_t kMaxWorkers = 16;
constexpr size_t kForTheSlow = kMaxWorkers / 2;
// A server of this host answers in some 5 ms; what hangs takes its call's deadline, 2 to 5 s.
constexpr Duration kSlow = Seconds(1);
// That something did not work a while ago is no news.
constexpr Duration kErrorsKept = Milliseconds(500);
// What nobody fetched goes: beyond any `keep`, and beyond the idle look at a Server.
constexpr Duration kForgotten = Seconds(30);

}  // namespace

Asker::Asker(const Clock& clock, Duration patience) : clock_(clock), patience_(patience) {}

Asker::~Asker() {
  std::vector<std::thread> workers;
  {
    const MutexLock lock(mutex_);
    stopping_ = true;
    queue_.clear();
    workers.swap(workers_);
    work_.NotifyAll();
  }
  for (std::thread& worker : workers) worker.join();
}

std::any Asker::Await(const std::string& whom, const std::string& what, Duration keep, std::function<std::any()> call,
                      const std::function<Code(const std::any&)>& code) {
  const MutexLock lock(mutex_);
  const Duration now = clock_.Read().boot;
  for (auto it = asked_.begin(); it != asked_.end();) {
    const bool forgotten = it->second->landed && now - it->second->landed_at > kForgotten;
    it = forgotten ? asked_.erase(it) : std::next(it);
  }
  const std::pair name(whom, what);
  std::shared_ptr<Question>& known = asked_[name];
  if (known && known->landed) {
    const Code said = code(known->answer);
    const bool holds = said == Code::kOk ? now - known->landed_at <= keep : now - known->landed_at <= kErrorsKept;
    if (!holds) known.reset();
  }
  if (!known) {
    known = std::make_shared<Question>();
    known->whom = whom;
    known->call = std::move(call);
    Submit(known);
  }
  const std::shared_ptr<Question> question = known;  // others may ask and fetch while this one waits
  while (!question->landed) {
    if (!question->changed.WaitFor(mutex_, patience_)) break;
  }
  if (!question->landed) return {};
  const auto it = asked_.find(name);
  if (it != asked_.end() && it->second == question) asked_.erase(it);
  return question->answer;
}

void Asker::Submit(const std::shared_ptr<Question>& question) {
  queue_.push_back(question);
  if (queue_.size() > idle_ && workers_.size() < kMaxWorkers) workers_.emplace_back([this] { Work(); });
  work_.NotifyOne();
}

std::shared_ptr<Asker::Question> Asker::Next() {
  for (auto it = queue_.begin(); it != queue_.end(); ++it) {
    const bool slow = slow_.contains((*it)->whom);
    if (slow && slow_under_way_ >= kForTheSlow) continue;
    std::shared_ptr<Question> question = *it;
    queue_.erase(it);
    return question;
  }
  return nullptr;
}

void Asker::Work() {
  const MutexLock lock(mutex_);
  while (true) {
    std::shared_ptr<Question> question;
    while (!stopping_ && (question = Next()) == nullptr) {
      ++idle_;
      work_.Wait(mutex_);
      --idle_;
    }
    if (stopping_) return;
    const bool slow = slow_.contains(question->whom);
    slow_under_way_ += slow ? 1 : 0;
    const Duration begun = clock_.Read().boot;
    mutex_.Unlock();
    std::any answer = question->call();
    mutex_.Lock();
    slow_under_way_ -= slow ? 1 : 0;
    question->call = nullptr;
    question->answer = std::move(answer);
    question->landed = true;
    question->landed_at = clock_.Read().boot;
    if (question->landed_at - begun >= kSlow) {
      slow_.insert(question->whom);
    } else if (slow_.erase(question->whom) != 0) {
      work_.NotifyAll();  // what was put off need not be any more
    }
    question->changed.NotifyAll();
  }
}

}  // namespace lockkeeper::peer
