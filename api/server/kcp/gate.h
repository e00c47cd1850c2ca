// Gate: what stands between the socket and the API of a kcp-like server.
//
// Purpose:   health, tokens, access to clusters, faults, goaway, the request log, and the life of a request while
//            the server stops: in-flight ones are counted, and in the abort mode a workspace's requests lose their
//            context at SIGTERM (2.11): watches end in order, running and new ones are answered 504.
// Ownership: borrows all it is given; the server is stopped before the Gate goes.
// Threads:   Handle on many threads at once; the rest by any.
// Failure:   none; each failure is an answer.
#pragma once

#include <atomic>
#include <memory>
#include <random>
#include <string>

#include "api/base/sync.h"
#include "api/server/handler.h"
#include "api/server/kcp/faults.h"
#include "api/server/kcp/health.h"
#include "api/server/kcp/journal.h"
#include "api/server/kcp/options.h"
#include "api/server/kcp/tokens.h"

namespace lockkeeper::kcp {

// Waits for a store that stalls on purpose.
class StoreStall {
 public:
  explicit StoreStall(const Faults& faults) : faults_(faults) {}
  // kTimeout when it stalls longer than `patience`, kCancelled when `*cancelled` turned true.
  Status Wait(Duration patience, const std::atomic<bool>& cancelled) const;
  bool Stalls() const { return faults_.Within("store-stall"); }

 private:
  const Faults& faults_;
};

class Gate {
 public:
  struct Parts {
    const Options& options;
    const Faults& faults;
    const Tokens& tokens;
    const Health& health;
    Journal& request_log;
    apiserver::Store& store;
    const apiserver::Catalog& catalog;
    const Clock& clock;
    Duration request_timeout;  // kcp's 60 s, scaled
    // Since when the server is ready; zero: not yet.
    const std::atomic<int64_t>& ready_since;
  };
  explicit Gate(Parts parts);
  ~Gate();

  void Handle(const HttpRequest& request, HttpResponse& response);

  // SIGTERM in the abort mode: contexts of workspaces are gone from now on.
  void AbortWorkspaces();
  // --shutdown-send-retry-after: 429 for all but health.
  void RefuseNew() { refusing_ = true; }
  // Ends every watch in order.
  void EndWatches();

  int running() const { return running_; }  // requests that are no watches
  int watches() const { return watches_; }

 private:
  struct Visit;
  class WatchWriter;
  class NoTokens;  // the handler asks nobody: the gate has

  // True when the answer is written.
  bool Refused(Visit& visit);
  bool AnswerHealth(Visit& visit);
  bool CheckCaller(Visit& visit);
  void Serve(Visit& visit);
  void WrapWatch(Visit& visit);
  void Reply(Visit& visit, const apiserver::ApiError& error);
  bool Aborted(const apiserver::RequestInfo& info) const;
  bool WrittenByNewer(const std::string& body) const;
  void Record(const Visit& visit, std::string_view outcome);
  bool DrawGoaway() LK_EXCLUDES(mutex_);

  const Parts parts_;
  const StoreStall stall_;
  std::unique_ptr<NoTokens> no_tokens_;
  std::unique_ptr<apiserver::ApiHandler> api_;

  std::atomic<bool> aborted_{false};
  std::atomic<bool> refusing_{false};
  std::atomic<bool> ending_watches_{false};
  std::atomic<int> running_{0};
  std::atomic<int> watches_{0};

  Mutex mutex_;
  std::mt19937_64 random_ LK_GUARDED_BY(mutex_);
};

// Whether the first of two versions is the newer one, by the numbers in them.
bool IsNewerVersion(const std::string& a, const std::string& b);

}  // namespace lockkeeper::kcp
