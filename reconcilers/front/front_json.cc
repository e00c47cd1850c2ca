#include "reconcilers/front/front_json.h"

#include <array>

namespace lockkeeper::front {
namespace {

constexpr std::array kAllCodes = {Code::kInvalid,     Code::kNotFound,     Code::kAlreadyExists, Code::kConflict,
                                  Code::kExpired,     Code::kPrecondition, Code::kUnauthorized,  Code::kForbidden,
                                  Code::kUnavailable, Code::kTimeout,      Code::kBusy,          Code::kExhausted,
                                  Code::kCorrupt,     Code::kUnsupported,  Code::kCancelled,     Code::kInternal};

}  // namespace

Json TargetToJson(const FrontTarget& t) {
  return Json::MakeObject({{"hold", t.hold},
                           {"slot", t.slot},
                           {"incarnation", t.incarnation},
                           {"invocation", t.invocation},
                           {"address", t.address},
                           {"bootID", t.boot_id},
                           {"revision", t.revision},
                           {"ledgerID", t.ledger_id}});
}

Result<FrontTarget> TargetFromJson(const Json& json) {
  if (!json.IsObject()) return Status(Code::kInvalid, "a target must be an object");
  for (const char* name : {"slot", "address", "bootID", "ledgerID"}) {
    if (json.Has(name) && !json.Get(name).IsString()) {
      return Status(Code::kInvalid, std::string("target.") + name + " must be a string");
    }
  }
  for (const char* name : {"incarnation", "invocation", "revision"}) {
    if (json.Has(name) && !json.Get(name).IsInt()) {
      return Status(Code::kInvalid, std::string("target.") + name + " must be an integer");
    }
  }
  if (json.Has("hold") && !json.Get("hold").IsBool())
    return Status(Code::kInvalid, "target.hold must be true or false");
  return FrontTarget{.hold = json.Get("hold").AsBool(),
                     .slot = json.Get("slot").AsString(),
                     .incarnation = json.Get("incarnation").AsInt(),
                     .invocation = json.Get("invocation").AsInt(),
                     .address = json.Get("address").AsString(),
                     .boot_id = json.Get("bootID").AsString(),
                     .revision = json.Get("revision").AsInt(),
                     .ledger_id = json.Get("ledgerID").AsString()};
}

Json StateToJson(const FrontState& s) {
  Json json = Json::MakeObject();
  if (s.target) json.Set("target", TargetToJson(*s.target));
  json.Set("generation", s.generation);
  Json open = Json::MakeArray();
  for (const auto& b : s.open) {
    open.Push(Json::MakeObject({{"slot", b.slot},
                                {"incarnation", b.incarnation},
                                {"invocation", b.invocation},
                                {"address", b.address},
                                {"open", b.open},
                                {"draining", b.draining},
                                {"oldestSeconds", b.oldest_seconds}}));
  }
  json.Set("open", std::move(open));
  json.Set("held", s.held);
  json.Set("drainedTotal", s.drained_total);
  json.Set("cutTotal", s.cut_total);
  json.Set("refusedTotal", s.refused_total);
  json.Set("acceptedTotal", s.accepted_total);
  json.Set("pid", s.pid);
  json.Set("uptimeSeconds", s.uptime_seconds);
  json.Set("version", s.version);
  json.Set("listen", s.listen);
  json.Set("stopping", s.stopping);
  json.Set("settings", s.settings);
  return json;
}

Result<FrontState> StateFromJson(const Json& json) {
  if (!json.IsObject() || !json.Get("generation").IsInt()) {
    return Status(Code::kInternal, "the front's status has no generation");
  }
  FrontState s;
  if (const Json* target = json.Find("target")) {
    LK_ASSIGN_OR_RETURN(s.target, TargetFromJson(*target));
  }
  s.generation = json.Get("generation").AsInt();
  for (const auto& b : json.Get("open").AsArray()) {
    s.open.push_back({.slot = b.Get("slot").AsString(),
                      .incarnation = b.Get("incarnation").AsInt(),
                      .invocation = b.Get("invocation").AsInt(),
                      .address = b.Get("address").AsString(),
                      .open = static_cast<int>(b.Get("open").AsInt()),
                      .draining = static_cast<int>(b.Get("draining").AsInt()),
                      .oldest_seconds = b.Get("oldestSeconds").AsDouble()});
  }
  s.held = static_cast<int>(json.Get("held").AsInt());
  s.drained_total = json.Get("drainedTotal").AsInt();
  s.cut_total = json.Get("cutTotal").AsInt();
  s.refused_total = json.Get("refusedTotal").AsInt();
  s.accepted_total = json.Get("acceptedTotal").AsInt();
  s.pid = static_cast<int>(json.Get("pid").AsInt());
  s.uptime_seconds = json.Get("uptimeSeconds").AsDouble();
  s.version = json.Get("version").AsString();
  s.listen = json.Get("listen").AsString();
  s.stopping = json.Get("stopping").AsBool();
  s.settings = json.Get("settings").AsString();
  return s;
}

Json ErrorToJson(const Status& status) {
  return Json::MakeObject(
      {{"error", Json::MakeObject({{"code", CodeName(status.code())}, {"message", status.message()}})}});
}

Status ErrorFromJson(const Json& json, int http_status) {
  const std::string& name = json.At({"error", "code"}).AsString();
  const std::string& message = json.At({"error", "message"}).AsString();
  for (const Code code : kAllCodes) {
    if (CodeName(code) == name) return {code, message};
  }
  return {Code::kInternal, "the front answered HTTP " + std::to_string(http_status) + " without a reason"};
}

int HttpStatusOf(Code code) {
  switch (code) {
    case Code::kOk: return 200;
    case Code::kInvalid: return 400;
    case Code::kUnauthorized: return 401;
    case Code::kForbidden: return 403;
    case Code::kNotFound: return 404;
    case Code::kAlreadyExists:
    case Code::kConflict:
    case Code::kPrecondition: return 409;
    case Code::kExpired: return 410;
    case Code::kUnsupported: return 501;
    case Code::kUnavailable:
    case Code::kBusy:
    case Code::kCancelled: return 503;
    case Code::kTimeout: return 504;
    case Code::kExhausted: return 507;
    case Code::kCorrupt:
    case Code::kInternal: return 500;
  }
  return 500;
}

}  // namespace lockkeeper::front
