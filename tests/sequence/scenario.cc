#include "tests/sequence/scenario.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "api/base/log.h"
#include "controller/typed.h"
#include "reconcilers/ports/documents.h"

namespace lockkeeper::sequence {
namespace {

constexpr char kHost[] = "host-a";
constexpr char kData[] = "/data";

template <typename T>
void EditSpec(MemoryApi* api, T* stored, const ObjectKey& key, const std::function<void(decltype(T::spec)&)>& edit) {
  if (api == nullptr) {
    edit(stored->spec);
    ++stored->metadata.generation;
    return;
  }
  Result<T> object = Get<T>(*api, key);
  LK_CHECK(object.ok());
  edit(object->spec);
  LK_CHECK(Update<T>(*api, *object).ok());
}

// What an API server gives a new object.
template <typename T>
T Made(T object, int64_t number) {
  object.metadata.uid = "uid-" + std::to_string(number);
  object.metadata.generation = 1;
  object.metadata.creation_timestamp = Time(Seconds(1700000000 + static_cast<double>(number)));
  return object;
}

}  // namespace

ServerSpec KcpSpec() {
  ServerSpec spec;
  spec.host = kHost;
  spec.install_version = "v1";
  spec.source.emplace();
  spec.source->url = "/builds/{version}";
  spec.template_.command = {"bin/kcp", "start", "--root-directory={root}", "--secure-port={port}"};
  spec.template_.companions.emplace_back();
  spec.template_.companions[0].name = "kine";
  spec.template_.companions[0].command = {"/usr/bin/kine"};
  spec.seed.emplace();
  spec.member_token.emplace();
  spec.member_token->file = "/members/token";
  spec.member_token->context = "root";
  spec.front_ref.emplace();
  spec.front_ref->name = "front";
  spec.lease.emplace();
  spec.lease->name = "kcp-controllers";
  spec.probe.type = ProbeType::kWorkspace;
  spec.backup.driver = BackupDriver::kSqlite;
  spec.backup.sqlite.emplace();
  spec.backup.sqlite->file = "/data/store.db";
  return spec;
}

Result<Server> StoreObjects::GetServer(const ObjectKey& key) {
  if (away) return Status(Code::kUnavailable, "the API does not answer");
  if (!server || server->metadata.name != key.name)
    return Status(Code::kNotFound, "servers " + key.ToString() + " not found");
  return *server;
}

Result<std::vector<Upgrade>> StoreObjects::UpgradesOf(const ObjectKey&) {
  if (away) return Status(Code::kUnavailable, "the API does not answer");
  std::vector<Upgrade> out;
  for (const auto& [name, u] : upgrades) out.push_back(u);
  return out;
}

Result<std::vector<Roll>> StoreObjects::RollsOf(const ObjectKey&) {
  if (away) return Status(Code::kUnavailable, "the API does not answer");
  std::vector<Roll> out;
  for (const auto& [name, r] : rolls) out.push_back(r);
  return out;
}

// What lives in the agent's memory.
struct Scenario::Agent {
  explicit Agent(roll::Dependencies deps) : server(std::move(deps)) {}
  roll::Reconciler server;
};

Scenario::Scenario(Options options) : world(options.seed), options_(options) {
  for (const char* version : {"v1", "v2", "v3"}) {
    fakes::Build build;
    build.version = version;
    build.path = std::string("/data/releases/") + version;
    build.sha = std::string(version) + "-000000000000";
    world.builds[build.path] = build;
  }
  world.files["/usr/bin/kine"] = "kine";
  world.election_scale = 0.1;
  api.SetBefore([this](const std::string& verb, const Resource&, const ObjectKey&) -> Status {
    if (world.api_away) return Status(Code::kUnavailable, "the API does not answer");
    if (verb == "get" || verb == "list" || verb == "watch") return Status::Ok();
    return world.faults.Call<Status>(("api." + verb).c_str(), true, [] { return Status::Ok(); });
  });
  ConfigureLog(LogLevel::kOff, LogFormat::kText);
  started_ = world.wall();
  NewAgent();
}

Scenario::~Scenario() = default;

void Scenario::NewAgent() {
  world.ledger.DropListeners();
  roll::Objects& objects = options_.api ? static_cast<roll::Objects&>(api_objects_) : store;
  roll::Dependencies deps{api,    objects, world.clock, world.ledger, units_,
                          front_, peer_,   files_,      nullptr,      {kHost, world.hostname, kData}};
  if (!options_.api) deps.mirror = [](const ServerKey&) {};
  agent_ = std::make_unique<Agent>(std::move(deps));
}

void Scenario::CrashAgent() {
  ++crashes_;
  Note("--- the agent's process ends; another begins ---");
  NewAgent();
}

fakes::Build& Scenario::BuildOf(const std::string& version) { return world.builds["/data/releases/" + version]; }

void Scenario::ApplyServer(const ServerSpec& spec) {
  Server server;
  server.metadata.namespace_ = key.ns;
  server.metadata.name = key.name;
  server.spec = spec;
  world.outage_allowed = spec.shape == ServerShape::kSingle;
  store.server = Made(server, ++store.uids);
  store.server->metadata.finalizers = {roll::kFinalizer};
  if (options_.api) LK_CHECK(Create<Server>(api, server).ok());
}

void Scenario::EditServer(const std::function<void(ServerSpec&)>& edit) {
  EditSpec<Server>(options_.api ? &api : nullptr, &*store.server, {key.ns, key.name}, edit);
}

void Scenario::DeleteServer() {
  store.server->metadata.deletion_timestamp = world.wall();
  if (options_.api) LK_CHECK(Delete<Server>(api, {key.ns, key.name}).ok());
}

void Scenario::PlantRelease(const std::string& version) {
  ReleaseDocument doc;
  doc.ns = key.ns;
  doc.name = "kcp-" + version;
  doc.server = key.name;
  doc.version = version;
  world.ledger.Plant(kReleaseDocument, doc.Key(), doc.ToJson().Dump());
}

void Scenario::ApplyRoll(const std::string& name, const std::string& version,
                         const std::function<void(RollSpec&)>& edit) {
  Roll object;
  object.metadata.namespace_ = key.ns;
  object.metadata.name = name;
  object.spec.server_ref.name = key.name;
  if (!version.empty()) {
    object.spec.release_ref.emplace();
    object.spec.release_ref->name = "kcp-" + version;
    PlantRelease(version);
  }
  if (edit) edit(object.spec);
  world.outage_allowed = world.outage_allowed || object.spec.planned_outage;
  Roll& stored = store.rolls[name] = Made(object, ++store.uids);
  stored.metadata.finalizers = {roll::kFinalizer};
  if (options_.api) LK_CHECK(Create<Roll>(api, object).ok());
}

void Scenario::EditRoll(const std::string& name, const std::function<void(RollSpec&)>& edit) {
  EditSpec<Roll>(options_.api ? &api : nullptr, &store.rolls[name], {key.ns, name}, edit);
}

void Scenario::ApplyUpgrade(const std::string& name, const std::string& version) {
  Upgrade upgrade;
  upgrade.metadata.namespace_ = key.ns;
  upgrade.metadata.name = name;
  upgrade.metadata.finalizers = {roll::kFinalizer};
  upgrade.spec.server_ref.name = key.name;
  upgrade.spec.version = version;
  store.upgrades[name] = Made(upgrade, ++store.uids);
  if (options_.api) LK_CHECK(Create<Upgrade>(api, upgrade).ok());
}

void Scenario::ApplyChildRoll(const std::string& upgrade, const std::string& name, const std::string& version) {
  PlantRelease(version);
  Roll object;
  object.metadata.namespace_ = key.ns;
  object.metadata.name = name;
  OwnerReference owner;
  owner.api_version = Upgrade::kApiVersion;
  owner.kind = Upgrade::kKind;
  owner.name = upgrade;
  owner.uid = options_.api ? Get<Upgrade>(api, {key.ns, upgrade})->metadata.uid : store.upgrades[upgrade].metadata.uid;
  owner.controller = true;
  object.metadata.owner_references = {owner};
  object.spec.server_ref.name = key.name;
  object.spec.release_ref.emplace();
  object.spec.release_ref->name = "kcp-" + version;
  object.spec.backup = RollBackup::kNone;
  store.rolls[name] = Made(object, ++store.uids);
  if (options_.api) LK_CHECK(Create<Roll>(api, object).ok());
}

void Scenario::CloseUpgrade(const std::string& name, Outcome outcome) {
  store.upgrades[name].status.outcome = outcome;
  if (!options_.api) return;
  Result<Upgrade> upgrade = Get<Upgrade>(api, {key.ns, name});
  LK_CHECK(upgrade.ok());
  upgrade->status.outcome = outcome;
  LK_CHECK(UpdateStatus<Upgrade>(api, *upgrade).ok());
}

Server Scenario::server() {
  const Result<Server> object = Get<Server>(api, {key.ns, key.name});
  return object.ok() ? *object : Server{};
}

Roll Scenario::roll(const std::string& name) {
  const Result<Roll> object = Get<Roll>(api, {key.ns, name});
  return object.ok() ? *object : Roll{};
}

std::string Scenario::ReasonOf(std::string_view condition) {
  for (const Condition& c : agent_->server.LastStatus(key).conditions) {
    if (c.type == condition) return std::string(EnumName(c.status)) + " " + c.reason;
  }
  return "";
}

std::optional<OutcomeRecord> Scenario::OutcomeOf(const std::string& name) {
  for (const OutcomeRecord& o : world.ledger.outcomes()) {
    if (o.name == name) return o;
  }
  return std::nullopt;
}

bool Scenario::Install(const ServerSpec& spec) {
  ApplyServer(spec);
  const bool log = log_on;
  log_on = false;
  const bool done = RunUntil([&] { return record().installed && !HasOperation(); }) && Settle();
  log_on = log;
  started_ = world.wall();
  world.flips.clear();
  return done;
}

void Scenario::Begin(const Scenario& other) {
  const std::mt19937_64 rng = world.rng;
  world.Begin(other.world);
  world.rng = rng;
  world.ledger.Load(other.world.ledger.Save());
  store = other.store;
  started_ = world.wall();
  NewAgent();
}

void Scenario::Note(std::string line) {
  if (!log_on) return;
  // A probe's name is a time, which says nothing about the roll.
  static constexpr std::string_view kProbe = "roll-probe-";
  for (size_t at = line.find(kProbe); at != std::string::npos; at = line.find(kProbe, at + kProbe.size())) {
    const size_t from = at + kProbe.size();
    line.replace(from, std::min(line.find_first_of(" ])", from), line.size()) - from, "N");
  }
  if (line == last_line_) {
    ++repeats_;
    return;
  }
  if (repeats_ > 0) log_.back() += " (x" + std::to_string(repeats_ + 1) + ")";
  repeats_ = 0;
  last_line_ = line;
  char at[32];
  std::snprintf(at, sizeof at, "%8.3f ", ToSeconds(world.wall() - started_));
  log_.push_back(at + line);
}

std::string Scenario::LogText() const {
  std::string text;
  for (const std::string& line : log_) text += line + "\n";
  return text;
}

void Scenario::RunPart(int part) {
  switch (part) {
    case 0: {
      const Result<Duration> again = agent_->server.Reconcile({key.ns, key.name});
      last_plan_ = agent_->server.LastPlan(key);
      next_ = again.ok() ? *again : Milliseconds(100);
      Note(roll::DebugString(last_plan_));

      break;
    }
    case 1: Slots(); break;
    case 2: Front(); break;
    default: Documents(); break;
  }
}

void Scenario::Round() {
  std::array<int, 4> parts = {0, 1, 2, 3};
  if (options_.shuffled) std::shuffle(parts.begin(), parts.end(), world.rng);
  for (int part : parts) {
    try {
      RunPart(part);
    } catch (const fakes::Crash&) {
      CrashAgent();
    }
    CheckInvariants();
  }
  const Duration most = Milliseconds(options_.shuffled ? 5 + static_cast<int64_t>(world.rng() % 60) : 20);
  world.Advance(std::clamp(next_, Milliseconds(2), most));
}

bool Scenario::RunUntil(const std::function<bool()>& done, int limit) {
  for (int i = 0; i < limit; ++i) {
    if (done()) return true;
    Round();
    if (!world.violations().empty()) return false;
  }
  return done();
}

bool Scenario::Settle(int limit) {
  int quiet = 0;
  int64_t revision = -1;
  return RunUntil(
      [&] {
        const bool still = !HasOperation() && world.ledger.Info().revision == revision;
        revision = world.ledger.Info().revision;
        quiet = still ? quiet + 1 : 0;
        return quiet > 12;
      },
      limit);
}

void Scenario::CheckInvariants() {
  ServerRecord& rec = record();
  std::set<std::string> holders;
  // A live process of the recorded active slot is not left without the desire, but in an outage or a stop.
  const auto active = rec.slots.find(rec.active);
  if (active != rec.slots.end() && !active->second.intent.running && !rec.stopped && !rec.deleting &&
      !(rec.operation && rec.operation->outage)) {
    world.Violate("the recorded active slot " + rec.active + " is not wanted");
  }
  if (rec.operation && rec.operation->report.flipped_at && rec.operation->report.persisted_at &&
      *rec.operation->report.flipped_at < *rec.operation->report.persisted_at) {
    world.Violate("flipped before it was recorded");
  }
}

void Scenario::Front() {
  const LedgerInfo info = world.ledger.Info();
  const std::optional<FrontTarget> want = roll::WantedFrontTarget(record(), world.clock.Read(), info);
  const Result<FrontState> state = front_.Get("ns/front");
  if (!want || !state.ok()) return;
  if (state->target && state->target->SameBackend(*want)) return;
  if (front_.Set("ns/front", *want).ok()) {
    Note("front: " +
         (want->hold ? "hold"
                     : want->slot + "#" + std::to_string(want->incarnation) + "." + std::to_string(want->invocation)));
  }
}

void Scenario::Documents() {
  if (documents_quiet_ == world.ledger.documents_changed() && pending_ == 0) return;
  pending_ = 0;
  const auto releases = world.ledger.ListDocuments(kReleaseDocument);
  for (const auto& [name, text] : *releases) {
    Result<ReleaseDocument> doc = ReleaseDocument::FromJson(text);
    if (!doc.ok() || doc->state == DocumentState::kReady) continue;
    ++pending_;
    if (!release_ready) continue;
    const fakes::Build& build = BuildOf(doc->version);
    doc->state = DocumentState::kReady;
    doc->build = {doc->version, "commit-" + doc->version, "artifact-" + doc->version, build.path, build.sha};
    (void)world.ledger.PutDocument(kReleaseDocument, name, doc->ToJson().Dump()).ok();
  }
  const auto backups = world.ledger.ListDocuments(kBackupDocument);
  for (const auto& [name, text] : *backups) {
    Result<BackupDocument> doc = BackupDocument::FromJson(text);
    if (!doc.ok() || doc->state != DocumentState::kPending) continue;
    ++pending_;
    if (doc->started_at == Time{}) {
      doc->started_at = world.wall();
    } else if (world.wall() - doc->started_at < Milliseconds(100)) {
      continue;
    } else {
      doc->state = backup_fails ? DocumentState::kFailed : DocumentState::kReady;
      doc->message = backup_fails ? "no space left on device" : "";
      doc->reference = "/data/backups/" + doc->name;
      doc->finished_at = world.wall();
    }
    (void)world.ledger.PutDocument(kBackupDocument, name, doc->ToJson().Dump()).ok();
  }
  documents_quiet_ = world.ledger.documents_changed();
}

}  // namespace lockkeeper::sequence
