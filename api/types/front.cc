#include "api/types/front.h"

#include <cstdlib>

#include "api/types/field_errors.h"
#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(ProxyProtocol) {
  static const EnumInfo info{"ProxyProtocol", {"None", "V2"}};
  return info;
}

const TypeInfo& HoldPolicy::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<HoldPolicy> b("HoldPolicy", "How new connections are held, not refused, while there is no backend.");
    b.Field(&HoldPolicy::connections, "connections", "Connections held at most; more wait in the kernel's queue.")
        .Range(0, 1000000)
        .Default(4096);
    b.Field(&HoldPolicy::seconds, "seconds",
            "Seconds a connection is held at most. A planned outage is refused when it could last longer.")
        .Range(0, 3600)
        .Default(180);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& KeepaliveSpec::Type() {
  static const TypeInfo* type = [] {
    using S = KeepaliveSpec;
    TypeBuilder<S> b("KeepaliveSpec", "TCP keepalive on both sides.");
    b.Field(&S::idle_seconds, "idleSeconds", "Silence before the first keepalive.").Range(1, 32767).Default(30);
    b.Field(&S::interval_seconds, "intervalSeconds", "Between keepalives.").Range(1, 32767).Default(10);
    b.Field(&S::count, "count", "Unanswered keepalives until the connection is dead.").Range(1, 127).Default(3);
    b.Field(&S::user_timeout_seconds, "userTimeoutSeconds",
            "Unacknowledged data until the connection is dead; 0: never.")
        .Range(0, 3600)
        .Default(60);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& FrontSpec::Type() {
  static const TypeInfo* type = [] {
    using S = FrontSpec;
    TypeBuilder<S> b("FrontSpec",
                     "Where the front listens and how it carries connections. Its backend is not chosen "
                     "here: it follows the active slot of the Server that claims it.");
    Name(b.Field(&S::host, "host", "Which agent runs it.")).Required().Immutable();
    b.Field(&S::listen, "listen", "Address and port to listen on, such as 0.0.0.0:6443 or [::]:6443.")
        .Required()
        .Length(3, 270)
        .Pattern("^([A-Za-z0-9.-]*|\\[[0-9A-Fa-f:.]+\\]):[0-9]{1,5}$", "an address and a port")
        // Guarded: int() of what is no number would be an error of the rule, in words of its own.
        .Check(
            "!self.matches(':[0-9]{1,5}$') || (int(self.substring(self.lastIndexOf(':') + 1)) >= 1 && "
            "int(self.substring(self.lastIndexOf(':') + 1)) <= 65535)",
            "the port must be from 1 to 65535", [](const Json& self, const Json*) {
              const std::string& text = self.AsString();
              if (!MatchesPattern(":[0-9]{1,5}$", text)) return true;  // the pattern says so
              const int64_t port = std::atoll(text.c_str() + text.rfind(':') + 1);
              return port >= 1 && port <= 65535;
            });
    b.Field(&S::max_connections, "maxConnections", "Connections carried at most; more wait in the kernel's queue.")
        .Range(1, 1000000)
        .Default(8192);
    b.Field(&S::hold, "hold", "How new connections are held while there is no backend.").Default(Json::MakeObject());
    b.Field(&S::keepalive, "keepalive", "TCP keepalive on both sides.").Default(Json::MakeObject());
    b.Field(&S::connect_timeout_milliseconds, "connectTimeoutMilliseconds",
            "Milliseconds a dial to the backend may take.")
        .Range(1, 60000)
        .Default(1000);
    b.Field(&S::idle_timeout_seconds, "idleTimeoutSeconds",
            "Seconds without a byte until a connection is closed; 0: never. Watches are idle by nature.")
        .Range(0, 30 * kDaySeconds)
        .Default(3600);
    b.Field(&S::proxy_protocol, "proxyProtocol", "V2 tells the backend the client's address in a PROXY header.")
        .Default("None");
    b.ImmutableHint("make another Front on the other host and point the Server to it");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& FrontClaim::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<FrontClaim> b("FrontClaim", "The Server that claims the front.");
    b.Field(&FrontClaim::name, "name", "Its name.").Required().Length(1, kNameLength);
    b.Field(&FrontClaim::uid, "uid", "Its uid.").Length(0, 64);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& FrontBackend::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<FrontBackend> b("FrontBackend", "Where new connections go.");
    b.Field(&FrontBackend::slot, "slot", "The slot.").Length(0, 64);
    Count(b.Field(&FrontBackend::incarnation, "incarnation", "The slot's incarnation."));
    b.Field(&FrontBackend::address, "address", "Its address.").Length(0, 270);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& FrontOpen::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<FrontOpen> b("FrontOpen", "Open connections on one backend.");
    b.Field(&FrontOpen::slot, "slot", "The slot.").Required().Length(1, 64);
    Count(b.Field(&FrontOpen::incarnation, "incarnation", "The slot's incarnation."));
    Count(b.Field(&FrontOpen::connections, "connections", "How many.")).Required();
    b.Field(&FrontOpen::oldest_seconds, "oldestSeconds", "Age of the oldest.");
    return b.Build();
  }();
  return *type;
}

const TypeInfo& FrontStatus::Type() {
  static const TypeInfo* type = [] {
    using S = FrontStatus;
    TypeBuilder<S> b("FrontStatus", "What the front does; written by the agent.");
    ObservedGeneration(b);
    b.Field(&S::claimed_by, "claimedBy", "The Server that claims it.");
    b.Field(&S::backend, "backend", "Where new connections go; absent while it holds them.");
    b.Field(&S::holding, "holding", "Whether new connections are held.");
    Count(b.Field(&S::generation, "generation", "The ledger's revision of the last setting."));
    b.Field(&S::open, "open", "Open connections by backend.").Items(0, 16);
    Count(b.Field(&S::held, "held", "Connections held now."));
    Count(b.Field(&S::drained, "drained", "Connections ended by drains, since it started."));
    Count(b.Field(&S::upgrade_generation, "upgradeGeneration", "How often its process was replaced without a gap."));
    b.Field(&S::pid, "pid", "Its process.").Range(0, kMaxPid);
    b.Field(&S::started_at, "startedAt", "When its process started.");
    Conditions(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Front::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Front> b("Front",
                         "One TCP front. Its backend follows the recorded active slot of the Server that "
                         "claims it.");
    KindFields(b, "Where it listens and how it carries connections.", "What it does.");
    ShortName(b);
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
