#include "reconcilers/release/reconciler.h"

#include "api/base/file.h"
#include "api/base/log.h"
#include "controller/typed.h"

namespace lockkeeper::release {
namespace {

constexpr Duration kProgressPeriod = Seconds(1);

Fact<ReleaseDocument> ReadDocument(Ledger& ledger, const ObjectKey& key) {
  const Result<std::string> text = ledger.GetDocument(kReleaseDocument, key.ToString());
  if (!text.ok()) return Fact<ReleaseDocument>::Of(text.status());
  return Fact<ReleaseDocument>::Of(ReleaseDocument::FromJson(*text));
}

}  // namespace

Snapshot Reconciler::Observe(const ObjectKey& key) {
  Snapshot s;
  s.host = deps_.host;
  s.document = ReadDocument(deps_.ledger, key);
  s.object = Fact<Release>::Of(Get<Release>(deps_.api, key));
  std::string server;
  if (s.document.known()) {
    server = s.document->server;
  } else if (s.object.known() && s.object->spec.server_ref) {
    server = s.object->spec.server_ref->name;
  }
  s.server = Fact<ServerRecord>::Of(deps_.ledger.Get(ServerKey{key.namespace_, server}));
  if (s.document.known() && s.document->state == DocumentState::kReady) {
    s.unpacked_is_there = PathExists(s.document->build.path);
    ReleaseInfo info;
    info.path = s.document->build.path;
    const Result<std::vector<ReleaseFileInfo>> files = deps_.source.Files(info);
    if (files.ok()) {
      constexpr size_t kShown = 64;
      for (const ReleaseFileInfo& f : *files) {
        if (s.files.size() == kShown) break;
        ReleaseFile file;
        file.path = f.path;
        file.sha256 = f.sha256;
        file.size = f.size;
        s.files.push_back(std::move(file));
      }
    }
  }
  return s;
}

Status Reconciler::Put(const ReleaseDocument& document) {
  LK_RETURN_IF_ERROR(deps_.ledger.PutDocument(kReleaseDocument, document.Key(), document.ToJson().Dump()));
  deps_.changed(ServerKey{document.ns, document.server});
  return Status::Ok();
}

void Reconciler::ShowProgress(const ReleaseDocument& document, int64_t done, int64_t total) {
  Result<Release> object = Get<Release>(deps_.api, {document.ns, document.name});
  if (!object.ok()) return;
  Snapshot s;
  s.document = document;
  s.object = *object;
  Progress progress;
  progress.step = "Downloading";
  progress.message = "fetching " + document.version;
  progress.done = done;
  if (total > 0) {
    progress.total = total;
    progress.percent = done * 100 / total;
  }
  progress.unit = "bytes";
  s.progress = progress;
  object->status = Summarize(s, deps_.clock.Read());
  // Help for a reader: a lost write is made good by the next.
  (void)UpdateStatus<Release>(deps_.api, *object).ok();
}

Result<ReleaseDocument> Reconciler::Fetched(ReleaseDocument d, const ServerSpec& spec) {
  if (!spec.source) {
    return Status(Code::kInvalid,
                  "spec.source: Server " + d.server + " names no source to fetch " + d.version + " from");
  }
  const auto& source = *spec.source;
  LK_ASSIGN_OR_RETURN(ReleaseInfo info, deps_.source.Resolve(source.url, d.version, source.index, d.artifact));
  const ChecksumType type = source.checksum.type;
  const std::string& checksum = type == ChecksumType::kValue ? source.checksum.value : source.checksum.url;
  Time shown = deps_.clock.Read().wall;
  LK_ASSIGN_OR_RETURN(info, deps_.source.Fetch(info, std::string(EnumName(type)), checksum, deps_.releases_dir,
                                               [&](int64_t done, int64_t total) {
                                                 const Time now = deps_.clock.Read().wall;
                                                 if (now - shown < kProgressPeriod) return;
                                                 shown = now;
                                                 ShowProgress(d, done, total);
                                               }));
  d.build.version = info.version;
  d.build.commit = info.commit;
  d.build.sha256 = info.sha256;
  d.build.path = info.path;
  d.url = info.url;
  d.size = info.size;
  d.verified_by = type == ChecksumType::kFile    ? "ChecksumFile"
                  : type == ChecksumType::kValue ? "ChecksumValue"
                                                 : "Nothing";
  d.executable = ExecutableOf(spec);
  const std::string path = d.executable.empty() ? spec.template_.command.at(0) : JoinPath(info.path, d.executable);
  const Result<std::string> sha = deps_.files.Sha256Executable(path);
  if (!sha.ok()) {
    return Status(Code::kInvalid, "release " + d.version + " has no executable " +
                                      (d.executable.empty() ? path : d.executable) +
                                      " (spec.template.command[0]): " + sha.status().message());
  }
  d.build.exec_sha256 = *sha;
  return d;
}

Status Reconciler::Fetch(ReleaseDocument document, const ServerSpec& spec) {
  document.state = DocumentState::kPending;
  Result<ReleaseDocument> fetched = Fetched(document, spec);
  if (fetched.ok()) {
    fetched->state = DocumentState::kReady;
    fetched->failures = 0;
    fetched->reason.clear();
    fetched->message.clear();
    LogInfo("release is on the host", {{"release", document.Key()}, {"path", fetched->build.path}});
    return Put(*fetched);
  }
  document.state = DocumentState::kFailed;
  document.failures += 1;
  document.reason = ReasonOf(fetched.status());
  document.message = fetched.status().message();
  document.next_try = deps_.clock.Read().wall + RetryAfter(document.failures);
  LogWarn("release was not fetched", {{"release", document.Key()}, {"error", document.message}});
  return Put(document);
}

Status Reconciler::Act(const ObjectKey& key, const Snapshot& s, const Plan& plan) {
  switch (plan.step) {
    case StepKind::kNone: return Status::Ok();
    case StepKind::kAdopt: {
      ReleaseDocument d;
      d.ns = key.namespace_;
      d.name = key.name;
      d.uid = s.object->metadata.uid;
      d.server = s.object->spec.server_ref ? s.object->spec.server_ref->name : "";
      d.version = s.object->spec.version;
      d.artifact = s.object->spec.artifact;
      return Put(d);
    }
    case StepKind::kFetch:
      // Content-addressed: what is there and whole is not fetched again.
      return Fetch(*s.document, s.server->spec);
    case StepKind::kFetchAgain: {
      ReleaseDocument d = *s.document;
      d.state = DocumentState::kPending;
      return Put(d);
    }
    case StepKind::kCreateObject: {
      Release object;
      object.metadata.namespace_ = key.namespace_;
      object.metadata.name = key.name;
      object.spec.server_ref.emplace().name = s.document->server;
      object.spec.host = deps_.host;
      object.spec.version = s.document->version;
      object.spec.artifact = s.document->artifact;
      const Status made = Create<Release>(deps_.api, object).status();
      return made.code() == Code::kAlreadyExists ? Status::Ok() : made;
    }
  }
  return Status::Ok();
}

Status Reconciler::Mirror(const Snapshot& s) {
  if (!s.object.known() || s.object->spec.host != deps_.host) return Status::Ok();
  Release object = *s.object;
  object.status = Summarize(s, deps_.clock.Read());
  if (object.status == s.object->status) return Status::Ok();
  return UpdateStatus<Release>(deps_.api, object).status();
}

Result<Duration> Reconciler::Reconcile(const ObjectKey& key) {
  Snapshot snapshot = Observe(key);
  if (snapshot.object.known() && snapshot.object->spec.host != deps_.host) return Duration{};
  LK_RETURN_IF_ERROR(Mirror(snapshot));
  const Plan plan = Decide(snapshot, deps_.clock.Read());
  if (plan.step == StepKind::kNone) return plan.requeue_after;
  LK_RETURN_IF_ERROR(Act(key, snapshot, plan));
  return Milliseconds(1);
}

}  // namespace lockkeeper::release
