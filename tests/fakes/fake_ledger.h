// FakeLedger: the port Ledger in memory, by the same contract; it outlives the agent that crashes.
// Threads: one thread. Failure: as the port; faults by Faults; SetFull and SetUnreadable.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "reconcilers/ports/ledger.h"
#include "tests/fakes/faults.h"

namespace lockkeeper::fakes {

class FakeLedger : public Ledger {
 public:
  explicit FakeLedger(Faults& faults) : faults_(faults) {
    info_.id = "11111111-2222-4333-8444-555555555555";
    info_.schema_version = 1;
    info_.host = "host-a";
    info_.machine_id = "machine";
  }

  LedgerInfo Info() override { return info_; }
  Result<std::vector<ServerKey>> Servers() override;
  Result<ServerRecord> Get(const ServerKey& key) override;
  Result<ServerRecord> Update(const ServerKey& key, const std::function<Status(ServerRecord&)>& change) override;
  Result<ServerRecord> Finish(const ServerKey& key, const OutcomeRecord& outcome,
                              const std::function<Status(ServerRecord&)>& change) override;
  Status Remove(const ServerKey& key) override;
  Result<OutcomeRecord> FindOutcome(const std::string& kind, const std::string& ns, const std::string& name) override;
  Result<std::vector<OutcomeRecord>> Outcomes(const std::string& server, int limit) override;
  Result<std::string> GetDocument(const std::string& kind, const std::string& key) override;
  Result<std::vector<std::pair<std::string, std::string>>> ListDocuments(const std::string& kind) override;
  Status PutDocument(const std::string& kind, const std::string& key, const std::string& json) override;
  Status RemoveDocument(const std::string& kind, const std::string& key) override;
  void AddListener(std::function<void(const ServerKey&)> listener) override {
    listeners_.push_back(std::move(listener));
  }

  // Tests: a document that somebody else wrote; no call of the agent.
  void Plant(const std::string& kind, const std::string& key, std::string json) {
    documents_[{kind, key}] = std::move(json);
    ++documents_changed_;
  }
  // Tests: the record without the port, the ledger as of an earlier copy, another ledger, errors.
  ServerRecord& Peek(const ServerKey& key) { return records_[key]; }
  void SetId(std::string id) { info_.id = std::move(id); }
  void SetUnreadable(bool on) { unreadable_ = on; }
  void SetFull(bool on) { full_ = on; }
  // How often the ballast was asked for. It has room for a hundred commits.
  int repairs() const { return repairs_; }
  Status RepairSpace() override {
    if (repairs_++ > 0) return Status(Code::kNotFound, "the ballast was given back already");
    spare_ = 100;
    return Status::Ok();
  }
  // A new agent process: nobody listens yet.
  void DropListeners() { listeners_.clear(); }
  int64_t documents_changed() const { return documents_changed_; }
  const std::vector<OutcomeRecord>& outcomes() const { return outcomes_; }
  struct Copy {
    LedgerInfo info;
    std::map<ServerKey, ServerRecord> records;
    std::vector<OutcomeRecord> outcomes;
    std::map<std::pair<std::string, std::string>, std::string> documents;
  };
  Copy Save() const { return {info_, records_, outcomes_, documents_}; }
  void Load(const Copy& copy) {
    info_ = copy.info;
    records_ = copy.records;
    outcomes_ = copy.outcomes;
    documents_ = copy.documents;
    ++documents_changed_;
  }

 private:
  Result<ServerRecord> Change(const ServerKey& key, const OutcomeRecord* outcome,
                              const std::function<Status(ServerRecord&)>& change);

  Faults& faults_;
  LedgerInfo info_;
  bool unreadable_ = false;
  bool full_ = false;
  int repairs_ = 0;
  int spare_ = 0;  // commits that a full disk still has room for
  int64_t documents_changed_ = 0;
  std::map<ServerKey, ServerRecord> records_;
  std::vector<OutcomeRecord> outcomes_;
  std::map<std::pair<std::string, std::string>, std::string> documents_;
  std::vector<std::function<void(const ServerKey&)>> listeners_;
};

}  // namespace lockkeeper::fakes
