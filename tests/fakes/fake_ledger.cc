#include "tests/fakes/fake_ledger.h"

namespace lockkeeper::fakes {
namespace {
Status Unreadable() { return Status(Code::kCorrupt, "ledger.db: database disk image is malformed; put a copy back"); }
}  // namespace

Result<std::vector<ServerKey>> FakeLedger::Servers() {
  std::vector<ServerKey> keys;
  for (const auto& [key, record] : records_) keys.push_back(key);
  return keys;
}

Result<ServerRecord> FakeLedger::Get(const ServerKey& key) {
  return faults_.Call<Result<ServerRecord>>("ledger.get", false, [&]() -> Result<ServerRecord> {
    if (unreadable_) return Unreadable();
    const auto it = records_.find(key);
    if (it == records_.end()) return Status(Code::kNotFound, "no record of Server " + key.ToString());
    return it->second;
  });
}

Result<ServerRecord> FakeLedger::Change(const ServerKey& key, const OutcomeRecord* outcome,
                                        const std::function<Status(ServerRecord&)>& change) {
  if (unreadable_) return Unreadable();
  if (full_ && spare_ == 0) return Status(Code::kExhausted, "ledger.db: the disk is full");
  if (full_) --spare_;
  const auto it = records_.find(key);
  ServerRecord next = it == records_.end() ? ServerRecord{} : it->second;
  next.key = key;
  LK_RETURN_IF_ERROR(change(next));
  bool mirrored_only = false;
  if (it != records_.end() && outcome == nullptr) {
    if (next == it->second) return next;
    ServerRecord posted = it->second;
    posted.posted_revision = next.posted_revision;
    mirrored_only = next == posted;
  }
  if (!mirrored_only) next.revision = ++info_.revision;
  records_[key] = next;
  if (outcome != nullptr) outcomes_.insert(outcomes_.begin(), *outcome);
  if (!mirrored_only) {
    for (const auto& listener : listeners_) listener(key);
  }
  return next;
}

Result<ServerRecord> FakeLedger::Update(const ServerKey& key, const std::function<Status(ServerRecord&)>& change) {
  return faults_.Call<Result<ServerRecord>>("ledger.update", true, [&] { return Change(key, nullptr, change); });
}

Result<ServerRecord> FakeLedger::Finish(const ServerKey& key, const OutcomeRecord& outcome,
                                        const std::function<Status(ServerRecord&)>& change) {
  return faults_.Call<Result<ServerRecord>>("ledger.finish", true, [&] { return Change(key, &outcome, change); });
}

Status FakeLedger::Remove(const ServerKey& key) {
  return faults_.Call<Status>("ledger.remove", true, [&] {
    records_.erase(key);
    ++info_.revision;
    return Status::Ok();
  });
}

Result<OutcomeRecord> FakeLedger::FindOutcome(const std::string& kind, const std::string& ns, const std::string& name) {
  for (const OutcomeRecord& o : outcomes_) {
    if (o.kind == kind && o.ns == ns && o.name == name) return o;
  }
  return Status(Code::kNotFound, "no outcome of " + kind + " " + ns + "/" + name);
}

Result<std::vector<OutcomeRecord>> FakeLedger::Outcomes(const std::string& server, int limit) {
  std::vector<OutcomeRecord> out;
  for (const OutcomeRecord& o : outcomes_) {
    if (o.server == server && static_cast<int>(out.size()) < limit) out.push_back(o);
  }
  return out;
}

Result<std::string> FakeLedger::GetDocument(const std::string& kind, const std::string& key) {
  const auto it = documents_.find({kind, key});
  if (it == documents_.end()) return Status(Code::kNotFound, "no document " + kind + " " + key);
  return it->second;
}

Result<std::vector<std::pair<std::string, std::string>>> FakeLedger::ListDocuments(const std::string& kind) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [key, json] : documents_) {
    if (key.first == kind) out.emplace_back(key.second, json);
  }
  return out;
}

Status FakeLedger::PutDocument(const std::string& kind, const std::string& key, const std::string& json) {
  return faults_.Call<Status>("ledger.put", true, [&] {
    if (full_) return Status(Code::kExhausted, "ledger.db: the disk is full");
    documents_[{kind, key}] = json;
    ++documents_changed_;
    return Status::Ok();
  });
}

Status FakeLedger::RemoveDocument(const std::string& kind, const std::string& key) {
  documents_.erase({kind, key});
  return Status::Ok();
}

}  // namespace lockkeeper::fakes
