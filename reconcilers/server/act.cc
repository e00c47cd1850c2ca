#include "reconcilers/server/act.h"

#include "reconcilers/ports/documents.h"

namespace lockkeeper::roll {
namespace {

void Fill(std::string& text, const std::string& error) {
  const size_t at = text.find("{error}");
  if (at != std::string::npos) text.replace(at, 7, error);
}

// Puts what the other side said where the plan left room for it.
Commit WithError(Commit commit, const std::string& error) {
  Fill(commit.record.member_token_error, error);
  if (commit.record.operation) {
    Fill(commit.record.operation->failure_message, error);
    for (auto& [name, note] : commit.record.operation->notes) Fill(note, error);
  }
  return commit;
}

}  // namespace

Status Actor::Act(const Snapshot& s, const Step& step) {
  Status done = std::visit([&](const auto& action) { return Do(s, action); }, step.action);
  if (done.ok()) {
    if (!step.then) return done;
    Commit then = *step.then;
    if (const auto* harvest = std::get_if<HarvestShared>(&step.action)) AddHashes(*harvest, then);
    return Do(s, then);
  }
  // Neither a record that moved nor an answer that has not come yet (kBusy) is a failure of the effect.
  if (!step.otherwise || done.code() == Code::kConflict || done.code() == Code::kBusy) return done;
  return Do(s, WithError(*step.otherwise, done.message()));
}

// Deadline: the ledger's own (a local commit). Repeating: refused, since the record has moved by it.
Status Actor::Do(const Snapshot& s, const Commit& commit) {
  if (commit.remove) return ledger_.Remove(s.key);
  ServerRecord before;
  const auto change = [&](ServerRecord& record) -> Status {
    if (record.revision != commit.base_revision) {
      return Status(Code::kConflict, "the record of Server " + s.key.ToString() + " moved from revision " +
                                         std::to_string(commit.base_revision) + " to " +
                                         std::to_string(record.revision));
    }
    before = record;
    const int64_t posted = record.posted_revision;
    record = commit.record;
    record.key = s.key;
    record.revision = before.revision;
    record.posted_revision = posted;
    return Status::Ok();
  };
  const auto write = [&] {
    return commit.outcome ? ledger_.Finish(s.key, *commit.outcome, change) : ledger_.Update(s.key, change);
  };
  Result<ServerRecord> after = write();
  // On a full disk what is under way is brought to its end with the ballast; nothing new begins with it.
  const bool begins = commit.record.operation && s.record.known() && !s.record->operation;
  if (after.code() == Code::kExhausted && !begins && ledger_.RepairSpace().ok()) after = write();
  if (!after.ok()) return after.status();
  committed(before, *after);
  return Status::Ok();
}

// Local files. Repeating: each file is written whole or found to be there already; the slot is stopped.
Status Actor::Do(const Snapshot&, const SeedSlot& effect) {
  if (effect.clear) LK_RETURN_IF_ERROR(files_.ClearRoot(effect.plan.root));
  LK_RETURN_IF_ERROR(files_.EnsureDir(effect.plan.root, effect.user, effect.group));
  if (effect.plan.files.empty()) return Status::Ok();
  return files_.Seed(effect.plan);
}

// Local files. Repeating: a file that is there is never written over.
Status Actor::Do(const Snapshot&, const HarvestShared& effect) { return files_.Harvest(effect.plan); }

void Actor::AddHashes(const HarvestShared& effect, Commit& commit) {
  for (const std::string& name : effect.plan.files) {
    const Result<std::string> hash = files_.FileSha256(effect.plan.shared_dir + "/" + name);
    if (hash.ok()) commit.record.shared_hashes[name] = *hash;
  }
}

// Local files. Repeating: a file that holds this token already is left alone.
Status Actor::Do(const Snapshot&, const RefreshToken& effect) {
  LK_ASSIGN_OR_RETURN(const std::string token, files_.ReadToken(effect.kubeconfig, effect.context));
  if (!effect.differs_from.empty()) {
    const Result<std::string> old = files_.ReadToken(effect.differs_from, effect.context);
    if (old.ok() && *old == token) {
      return Status(Code::kPrecondition, "the token in " + effect.kubeconfig + " is still the old slot's");
    }
  }
  return files_.WriteToken(effect.file, token);
}

// Local files. Repeating: the link is swapped for an equal one.
Status Actor::Do(const Snapshot&, const PointCurrent& effect) {
  LK_RETURN_IF_ERROR(files_.PointLink(effect.link, effect.target));
  if (effect.path_link.empty() || effect.path_target.empty()) return Status::Ok();
  // The second link is a courtesy: one that another tool owns, or that the agent may not write, is left alone.
  (void)files_.PointLink(effect.path_link, effect.path_target).ok();
  return Status::Ok();
}

// A document that is there already is left as it is: what was asked for once is not asked for twice.
Status Actor::Request(const char* kind, const std::string& key, const std::string& json) {
  const Result<std::string> there = ledger_.GetDocument(kind, key);
  if (!there.ok() && there.code() != Code::kNotFound) return there.status();
  if (!there.ok()) LK_RETURN_IF_ERROR(ledger_.PutDocument(kind, key, json));
  requested(kind, key);
  return Status::Ok();
}

Status Actor::Do(const Snapshot& s, const RequestRelease& effect) {
  ReleaseDocument document;
  document.ns = s.key.ns;
  document.name = effect.name;
  document.server = s.key.name;
  document.version = effect.version;
  return Request(kReleaseDocument, document.Key(), document.ToJson().Dump());
}

Status Actor::Do(const Snapshot& s, const RequestBackup& effect) {
  BackupDocument document;
  document.ns = s.key.ns;
  document.name = effect.name;
  document.server = s.key.name;
  document.why = effect.reason;
  return Request(kBackupDocument, document.Key(), document.ToJson().Dump());
}

// 2 s (the port's). Repeating: a drain under way is at most shortened; the current backend is refused.
Status Actor::Do(const Snapshot&, const DrainBackend& effect) {
  return fronts_.Drain(effect.front, effect.slot, effect.incarnation, effect.deadline).status();
}

// 5 s (the port's). Repeating: uid and resourceVersion are preconditions, so it cannot hit a successor.
Status Actor::Do(const Snapshot& s, const DeleteLease& effect) {
  Status status = peer_.DeleteLease(s.record->spec, effect.lease);
  if (status.code() == Code::kNotFound || status.code() == Code::kPrecondition || status.code() == Code::kConflict) {
    return Status::Ok();  // it moved or is gone: the next pass sees what stands there now
  }
  return status;
}

// 5 s (the port's). Repeating: an object of this name that is there already is the one.
Status Actor::Do(const Snapshot& s, const CreateProbe& effect) {
  return peer_.CreateProbe(s.record->spec, effect.name);
}

// 5 s a call (the port's). Repeating: what is gone stays gone. Best effort for older probes.
Status Actor::Do(const Snapshot& s, const DeleteProbes& effect) {
  const ServerSpec& spec = s.record->spec;
  const Status own = peer_.DeleteProbe(spec, effect.name);
  const Result<std::vector<std::string>> all = peer_.ListProbes(spec);
  if (all.ok()) {
    for (const std::string& name : *all) {
      if (name != effect.name) (void)peer_.DeleteProbe(spec, name).ok();
    }
  }
  return own.code() == Code::kNotFound ? Status::Ok() : own;
}

}  // namespace lockkeeper::roll
