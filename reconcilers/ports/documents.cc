#include "reconcilers/ports/documents.h"

namespace lockkeeper {
namespace {

constexpr const char* kStates[] = {"Pending", "Ready", "Failed"};

Json TimeJson(Time t) { return t == Time{} ? Json() : Json(FormatMicroTime(t)); }

Time TimeOf(const Json& json) {
  const Result<Time> time = ParseTime(json.AsString());
  return time.ok() ? *time : Time{};
}

Result<DocumentState> StateOf(const Json& json) {
  for (size_t i = 0; i < std::size(kStates); ++i) {
    if (json.AsString() == kStates[i]) return static_cast<DocumentState>(i);
  }
  return Status(Code::kCorrupt, "a document of the ledger has the state \"" + json.AsString() + "\"");
}

Result<Json> Parse(const std::string& text, const char* what) {
  const Result<Json> json = Json::Parse(text);
  if (!json.ok()) return Status(Code::kCorrupt, json.status().message()).Annotate(what);
  return json;
}

}  // namespace

Json ReleaseDocument::ToJson() const {
  return Json::MakeObject({{"ns", ns},
                           {"name", name},
                           {"uid", uid},
                           {"server", server},
                           {"version", version},
                           {"artifact", artifact},
                           {"state", kStates[static_cast<int>(state)]},
                           {"buildVersion", build.version},
                           {"commit", build.commit},
                           {"sha256", build.sha256},
                           {"path", build.path},
                           {"execSha256", build.exec_sha256},
                           {"url", url},
                           {"executable", executable},
                           {"size", size},
                           {"verifiedBy", verified_by},
                           {"reason", reason},
                           {"message", message},
                           {"nextTry", TimeJson(next_try)},
                           {"failures", failures}});
}

Result<ReleaseDocument> ReleaseDocument::FromJson(const std::string& text) {
  LK_ASSIGN_OR_RETURN(const Json j, Parse(text, "reading a release of the ledger"));
  ReleaseDocument d;
  LK_ASSIGN_OR_RETURN(d.state, StateOf(j.Get("state")));
  d.ns = j.Get("ns").AsString();
  d.name = j.Get("name").AsString();
  d.uid = j.Get("uid").AsString();
  d.server = j.Get("server").AsString();
  d.version = j.Get("version").AsString();
  d.artifact = j.Get("artifact").AsString();
  d.build.version = j.Get("buildVersion").AsString();
  d.build.commit = j.Get("commit").AsString();
  d.build.sha256 = j.Get("sha256").AsString();
  d.build.path = j.Get("path").AsString();
  d.build.exec_sha256 = j.Get("execSha256").AsString();
  d.url = j.Get("url").AsString();
  d.executable = j.Get("executable").AsString();
  d.size = j.Get("size").AsInt();
  d.verified_by = j.Get("verifiedBy").AsString();
  d.reason = j.Get("reason").AsString();
  d.message = j.Get("message").AsString();
  d.next_try = TimeOf(j.Get("nextTry"));
  d.failures = j.Get("failures").AsInt();
  return d;
}

Json BackupDocument::ToJson() const {
  Json j = Json::MakeObject({{"ns", ns},
                             {"name", name},
                             {"uid", uid},
                             {"server", server},
                             {"why", why},
                             {"state", kStates[static_cast<int>(state)]},
                             {"reference", reference},
                             {"sha256", sha256},
                             {"size", size},
                             {"startedAt", TimeJson(started_at)},
                             {"finishedAt", TimeJson(finished_at)},
                             {"reason", reason},
                             {"message", message}});
  if (writes_since) j.Set("writesSince", *writes_since);
  if (revision) j.Set("revision", *revision);
  return j;
}

Result<BackupDocument> BackupDocument::FromJson(const std::string& text) {
  LK_ASSIGN_OR_RETURN(const Json j, Parse(text, "reading a store backup of the ledger"));
  BackupDocument d;
  LK_ASSIGN_OR_RETURN(d.state, StateOf(j.Get("state")));
  d.ns = j.Get("ns").AsString();
  d.name = j.Get("name").AsString();
  d.uid = j.Get("uid").AsString();
  d.server = j.Get("server").AsString();
  d.why = j.Get("why").AsString();
  d.reference = j.Get("reference").AsString();
  d.sha256 = j.Get("sha256").AsString();
  d.size = j.Get("size").AsInt();
  d.started_at = TimeOf(j.Get("startedAt"));
  d.finished_at = TimeOf(j.Get("finishedAt"));
  d.reason = j.Get("reason").AsString();
  d.message = j.Get("message").AsString();
  if (j.Has("writesSince")) d.writes_since = j.Get("writesSince").AsInt();
  if (j.Has("revision")) d.revision = j.Get("revision").AsInt();
  return d;
}

}  // namespace lockkeeper
