// AgentSocket: the agent's own HTTP/1.1 JSON interface on a Unix socket, for when the API is away.
//
// Purpose:   status, history, logs, approve, abort, abandon, pause, resume, stop and start straight from and to the
//            ledger. Controls set here are or-ed with those of the resources, and recorded.
//   GET  /v1/status                                    host, ledger, one view a Server
//   GET  /v1/history?server=NS/NAME&limit=N            outcomes, newest first
//   GET  /v1/logs?server=NS/NAME&slot=S&lines=N        last lines of output, secrets masked
//   POST /v1/servers/NS/NAME/approve?gate=G  .../abort  .../abandon  .../stop  .../start
//        with ?operation=NAME only when that is the operation in flight
// Ownership: borrows ledger and units, which outlive it.
// Threads:   thread-safe; each request runs on a thread of its own.
// Failure:   a Status body {"code","message"} with 4xx or 5xx. The socket is 0600 and the peer must be root or the
//            agent's own user.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "api/base/json.h"
#include "api/base/time.h"
#include "api/transport/http_server.h"
#include "reconcilers/ports/ledger.h"
#include "reconcilers/ports/units.h"

namespace lockkeeper {

// The view of one record that `lockkeeper status` prints.
Json ServerView(const ServerRecord& record, const Now& now);
Json OutcomeView(const OutcomeRecord& outcome);

class AgentSocket {
 public:
  AgentSocket(std::string path, Ledger& ledger, Units& units, const Clock& clock, std::string version);
  ~AgentSocket();

  Status Start();
  void Stop();
  // Text that /v1/status shows beside the ledger: what keeps the agent from acting, "" when nothing does.
  void SetTrouble(std::function<std::string()> trouble) { trouble_ = std::move(trouble); }

  // For tests: one request without a socket.
  void Handle(const HttpRequest& request, HttpResponse& response);

 private:
  Result<Json> Route(const HttpRequest& request);
  Result<Json> StatusJson();
  Result<Json> History(const HttpRequest& request);
  Result<Json> Logs(const HttpRequest& request);
  Result<Json> Control(const ServerKey& key, const std::string& verb, const HttpRequest& request);

  const std::string path_;
  Ledger& ledger_;
  Units& units_;
  const Clock& clock_;
  const std::string version_;
  const Now started_;
  std::function<std::string()> trouble_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace lockkeeper
