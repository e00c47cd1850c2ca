#include "reconcilers/peer/asker.h"

#include <algorithm>
#include <utility>

namespace lockkeeper::peer {
namespace {

constexpr size_t kMaxWorkers = 16;
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

std::any Asker::Await(const std::string& what, Duration keep, std::function<std::any()> call,
                      const std::function<Code(const std::any&)>& code) {
  const MutexLock lock(mutex_);
  const Duration now = clock_.Read().boot;
  for (auto it = asked_.begin(); it != asked_.end();) {
    const bool forgotten = it->second->landed && now - it->second->landed_at > kForgotten;
    it = forgotten ? asked_.erase(it) : std::next(it);
  }
  std::shared_ptr<Question>& known = asked_[what];
  if (known && known->landed) {
    const Code said = code(known->answer);
    const bool holds = said == Code::kOk ? now - known->landed_at <= keep : now - known->landed_at <= kErrorsKept;
    if (!holds) known.reset();
  }
  if (!known) {
    known = std::make_shared<Question>();
    known->call = std::move(call);
    Submit(known);
  }
  const std::shared_ptr<Question> question = known;  // others may ask and fetch while this one waits
  while (!question->landed) {
    if (!question->changed.WaitFor(mutex_, patience_)) break;
  }
  if (!question->landed) return {};
  const auto it = asked_.find(what);
  if (it != asked_.end() && it->second == question) asked_.erase(it);
  return question->answer;
}

void Asker::Submit(const std::shared_ptr<Question>& question) {
  queue_.push_back(question);
  if (queue_.size() > idle_ && workers_.size() < kMaxWorkers) workers_.emplace_back([this] { Work(); });
  work_.NotifyOne();
}

void Asker::Work() {
  const MutexLock lock(mutex_);
  while (true) {
    while (queue_.empty() && !stopping_) {
      ++idle_;
      work_.Wait(mutex_);
      --idle_;
    }
    if (stopping_) return;
    const std::shared_ptr<Question> question = queue_.front();
    queue_.pop_front();
    mutex_.Unlock();
    std::any answer = question->call();
    mutex_.Lock();
    question->call = nullptr;
    question->answer = std::move(answer);
    question->landed = true;
    question->landed_at = clock_.Read().boot;
    question->changed.NotifyAll();
  }
}

}  // namespace lockkeeper::peer
