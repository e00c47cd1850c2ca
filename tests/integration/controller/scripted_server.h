// ScriptedServer: an API server of one resource ("things" in example.test/v1) whose every answer the test decides.
//
// Purpose:   lists and watches are answered from two scripts, in order; the last entry of each stays. Every target that
//            was asked for is kept.
// Threads:   thread-safe. Failure: aborts when it cannot listen.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "api/base/sync.h"
#include "api/transport/http_server.h"
#include "controller/http_api.h"

namespace lockkeeper::testing {

inline const Resource kThings{"example.test", "v1", "things", "Thing", true};

struct Answer {
  enum class End { kInOrder, kCut, kHold };
  int status = 200;
  std::string body{};                // of a list or an error
  std::vector<std::string> lines{};  // of a watch; each is written as it is
  End end = End::kHold;
  std::vector<std::pair<std::string, std::string>> headers{};
};

std::string ThingText(const std::string& name, int version, const std::string& uid = "");
Answer ListOf(int version, const std::vector<std::string>& things, const std::string& continue_token = "");
std::string EventLine(const std::string& type, const std::string& object);
std::string BookmarkLine(int version, bool initial_events_end = false);
// {"type":"ERROR"} with a Status of that code.
std::string ErrorLine(int code, const std::string& reason);
Answer ErrorAnswer(int code, const std::string& reason, const std::string& details = "{}");
Answer WatchOf(std::vector<std::string> lines, Answer::End end = Answer::End::kHold);

class ScriptedServer {
 public:
  ScriptedServer();
  ~ScriptedServer();

  void OnList(Answer answer);
  void OnWatch(Answer answer);
  // Anything else (writes, single objects).
  void OnOther(std::function<void(const HttpRequest&, HttpResponse&)> handler);

  std::string url() const;
  RestConfig Config() const;
  std::vector<std::string> Lists() const;  // queries
  std::vector<std::string> Watches() const;

 private:
  void Handle(const HttpRequest& request, HttpResponse& response);
  static Answer Next(std::deque<Answer>& script);

  mutable Mutex mutex_;
  std::deque<Answer> lists_ LK_GUARDED_BY(mutex_);
  std::deque<Answer> watches_ LK_GUARDED_BY(mutex_);
  std::vector<std::string> list_queries_ LK_GUARDED_BY(mutex_);
  std::vector<std::string> watch_queries_ LK_GUARDED_BY(mutex_);
  std::function<void(const HttpRequest&, HttpResponse&)> other_ LK_GUARDED_BY(mutex_);
  std::unique_ptr<HttpServer> server_;
};

}  // namespace lockkeeper::testing
