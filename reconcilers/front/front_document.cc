#include "reconcilers/front/front_document.h"

#include "api/types/codec.h"

namespace lockkeeper::fronts {
namespace {

Json DeadlineToJson(const Deadline& d) {
  if (!d.IsSet()) return {};
  return Json::MakeObject({{"wall", FormatMicroTime(d.wall)}, {"bootMicros", d.boot.count()}, {"bootID", d.boot_id}});
}

Deadline DeadlineFromJson(const Json& json) {
  Deadline d;
  if (!json.IsObject()) return d;
  d.wall = ParseTime(json.Get("wall").AsString()).value_or(Time{});
  d.boot = Duration(json.Get("bootMicros").AsInt());
  d.boot_id = json.Get("bootID").AsString();
  return d;
}

}  // namespace

Json FrontDocument::ToJson() const {
  return Json::MakeObject({{"ns", ns},
                           {"name", name},
                           {"uid", uid},
                           {"generation", generation},
                           {"spec", lockkeeper::ToJson(spec)},
                           {"deleting", deleting},
                           {"claimedBy", claimed_by},
                           {"invocation", invocation},
                           {"listen", listen},
                           {"failures", failures},
                           {"notBefore", DeadlineToJson(not_before)},
                           {"stopBy", DeadlineToJson(stop_by)},
                           {"restartSeen", restart_seen},
                           {"restartPid", restart_pid}});
}

Result<FrontDocument> FrontDocument::FromJson(const std::string& text) {
  const Result<Json> json = Json::Parse(text);
  if (!json.ok()) return Status(Code::kCorrupt, "reading a front of the ledger: " + json.status().message());
  const Json& j = *json;
  FrontDocument d;
  d.ns = j.Get("ns").AsString();
  d.name = j.Get("name").AsString();
  if (d.ns.empty() || d.name.empty()) return Status(Code::kCorrupt, "reading a front of the ledger: it has no name");
  d.uid = j.Get("uid").AsString();
  d.generation = j.Get("generation").AsInt();
  Result<FrontSpec> spec = lockkeeper::FromJson<FrontSpec>(j.Get("spec"));
  if (!spec.ok()) {
    return Status(Code::kCorrupt, "reading front " + d.Key() + " of the ledger: " + spec.status().message());
  }
  d.spec = std::move(*spec);
  d.deleting = j.Get("deleting").AsBool();
  d.claimed_by = j.Get("claimedBy").AsString();
  d.invocation = j.Get("invocation").AsInt();
  d.listen = j.Get("listen").AsString();
  d.failures = j.Get("failures").AsInt();
  d.not_before = DeadlineFromJson(j.Get("notBefore"));
  d.stop_by = DeadlineFromJson(j.Get("stopBy"));
  d.restart_seen = j.Get("restartSeen").AsString();
  d.restart_pid = j.Get("restartPid").AsInt();
  return d;
}

Result<std::string> FrontClaimedBy(Ledger& ledger, const std::string& ns, const std::string& front) {
  const Result<std::string> text = ledger.GetDocument(kFrontDocument, ns + "/" + front);
  if (text.code() == Code::kNotFound) return std::string();
  if (!text.ok()) return text.status();
  LK_ASSIGN_OR_RETURN(const FrontDocument document, FrontDocument::FromJson(*text));
  return document.claimed_by;
}

}  // namespace lockkeeper::fronts
