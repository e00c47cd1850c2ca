#include "tests/unit/ledger/random_record.h"

namespace lockkeeper {

std::string RandomRecord::Text() {
  static const char* kPieces[] = {"", "a", "blue", "\"", "\\", "\n", "\xc3\xa9", "{x}", "\t", "/p/q", "\x01", " "};
  std::string out;
  for (int64_t n = Number(4); n > 0; --n) out += kPieces[Number(11)];
  return out;
}

UnitIdentity RandomRecord::Identity() {
  return {Text(), Number(), static_cast<pid_t>(Number()), static_cast<uint64_t>(Number()), Text()};
}

UnitExit RandomRecord::Exit() {
  return {At(), static_cast<int>(Number(255)), static_cast<int>(Number(31)), Coin(), Coin()};
}

UnitSpec RandomRecord::Unit() {
  UnitSpec u;
  u.name = Text();
  u.argv = Many<std::string>([&] { return Text(); });
  u.env = Map<std::string>([&] { return Text(); });
  u.working_directory = Text();
  u.user = Text();
  u.group = Text();
  u.limits = {Number(), Number(), 0.25 * static_cast<double>(Number(64))};
  u.log_dir = Text();
  u.log_max_bytes = Number();
  u.log_keep = static_cast<int>(Number(9));
  u.listen_address = Text();
  u.restart = Coin();
  return u;
}

SlotIntent RandomRecord::Intent() {
  SlotIntent i;
  i.incarnation = Number();
  i.invocation = Number();
  i.unit = Unit();
  i.companions = Many<CompanionIntent>([&] {
    return CompanionIntent{Text(), Unit(), static_cast<int>(Number(65535))};
  });
  i.build = Build();
  i.root = Text();
  i.store_url = Text();
  i.running = Coin();
  i.stop_signal = static_cast<int>(Number(31));
  i.stop_seconds = Number();
  i.forget = Coin();
  return i;
}

SlotActual RandomRecord::Actual() {
  SlotActual a;
  a.incarnation = Number();
  a.invocation = Number();
  a.id = Identity();
  a.port = static_cast<int>(Number(65535));
  a.executable = Text();
  a.exec_sha256 = Text();
  for (Time* t : {&a.started_at, &a.listening_at, &a.stop_asked_at, &a.sigterm_at, &a.killed_at, &a.exited_at})
    *t = At();
  if (Coin()) a.exit = Exit();
  if (Coin())
    a.stop_reason = static_cast<StopReason>(Number(static_cast<int64_t>(EnumInfoOf(StopReason{}).values.size()) - 1));
  a.companions = Many<CompanionActual>([&] {
    CompanionActual c{Text(), Identity(), static_cast<int>(Number(65535)), {}};
    if (Coin()) c.exit = Exit();
    return c;
  });
  a.kill_at = Until();
  a.error = Text();
  a.error_code = Text();
  a.boots = Number();
  return a;
}

OperationRecord RandomRecord::Operation() {
  OperationRecord o;
  for (std::string* s :
       {&o.kind, &o.ns, &o.name, &o.uid, &o.spec_hash, &o.roll_name, &o.roll_uid, &o.action, &o.requested_by, &o.from,
        &o.to, &o.step, &o.failure_reason, &o.failure_message, &o.failed_step}) {
    *s = Text();
  }
  for (bool* b : {&o.outage, &o.abort, &o.abandon, &o.paused, &o.undoing, &o.failure_is_the_builds, &o.flipped_back,
                  &o.emergency_flip}) {
    *b = Coin();
  }
  o.target = Build();
  o.spec.server_ref.name = "kcp";
  o.spec.planned_outage = Coin();
  o.deadlines = Map<Deadline>([&] { return Until(); });
  o.started = Map<Time>([&] { return At(); });
  o.finished = Map<Time>([&] { return At(); });
  o.notes = Map<std::string>([&] { return Text(); });
  o.approved = Many<std::string>([&] { return Text(); });
  if (Coin()) o.waiting_since = Now{At(), Duration(Number()), Text()};
  o.waited = Duration(Number());
  o.undo_errors = Many<std::string>([&] { return Text(); });
  o.checks = Many<PreflightCheck>([&] { return PreflightCheck{Text(), CheckState::kPassed, Text(), Text(), {}}; });
  o.report.from = "blue";
  o.report.started_at = At();
  if (Coin()) o.rendered = Intent();
  if (Coin()) o.roll_outcome = Outcome::kRolledBack;
  o.root_generation = Number();
  o.roll_generation = Number();
  return o;
}

OutcomeRecord RandomRecord::Outcome() {
  OutcomeRecord o;
  for (std::string* s : {&o.kind, &o.ns, &o.name, &o.uid, &o.spec_hash, &o.server, &o.version, &o.reason, &o.message,
                         &o.requested_by, &o.failed_step}) {
    *s = Text();
  }
  o.outcome = static_cast<lockkeeper::Outcome>(Number(4));
  o.mode = Coin() ? OperationMode::kPreflight : OperationMode::kExecute;
  o.started_at = At();
  o.finished_at = At();
  if (Coin()) {
    o.report.emplace();
    o.report->to = "green";
    o.report->flipped_at = At();
  }
  o.steps_started = Map<Time>([&] { return At(); });
  o.steps_finished = Map<Time>([&] { return At(); });
  o.previous_version = Text();
  o.steps_skipped = Many<std::string>([&] { return Text(); });
  o.checks = Many<PreflightCheck>([&] { return PreflightCheck{Text(), CheckState::kFailed, Text(), Text(), {}}; });
  o.steps_ahead = Many<PlanStep>([&] { return PlanStep{Text(), Text(), 0.5, {}}; });
  return o;
}

ServerRecord RandomRecord::Server() {
  ServerRecord r;
  r.key = {Text(), Text()};
  for (std::string* s : {&r.uid, &r.active, &r.store_url, &r.member_token_of, &r.version, &r.degraded_reason,
                         &r.degraded_message, &r.probe_name, &r.member_token_error, &r.link_of, &r.previous_slot}) {
    *s = Text();
  }
  for (bool* b : {&r.deleting, &r.stopped, &r.released, &r.hold, &r.installed, &r.harvested,
                  &r.store_touched_by_new_build, &r.degraded}) {
    *b = Coin();
  }
  for (int64_t* n :
       {&r.generation, &r.incarnations, &r.declared_attempts, &r.repairs, &r.posted_revision, &r.revision}) {
    *n = Number();
  }
  r.spec.host = Text();
  r.spec.allow_downgrade = Coin();
  r.spec.template_.command = Many<std::string>([&] { return Text(); });
  if (Coin()) r.spec.front_ref = LocalRef{"kcp", {}};
  r.slots = Map<SlotEntry>([&] {
    SlotEntry s{Intent(), Actual(), {}, At()};
    if (Coin()) s.previous = Intent();
    return s;
  });
  r.shared_hashes = Map<std::string>([&] { return Text(); });
  if (Coin()) r.operation = Operation();
  r.history = Many<OutcomeRecord>([&] { return Outcome(); });
  r.rejected = Many<RejectedEntry>([&] { return RejectedEntry{Text(), Text(), Text(), At()}; });
  if (Coin()) r.last_restarted_at = Text();
  r.last_repair_at = At();
  r.repair_not_before = Until();
  r.last_exit_at = At();
  r.member_token_retry = Until();
  if (Coin()) r.previous_build = Build();
  if (Coin()) r.open_outcome = Outcome();
  return r;
}

}  // namespace lockkeeper
