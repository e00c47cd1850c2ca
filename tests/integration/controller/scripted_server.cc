#include "tests/integration/controller/scripted_server.h"

#include <thread>

namespace lockkeeper::testing {

std::string ThingText(const std::string& name, int version, const std::string& uid) {
  return R"({"apiVersion":"example.test/v1","kind":"Thing","metadata":{"namespace":"ns","name":")" + name +
         R"(","uid":")" + (uid.empty() ? "uid-" + name : uid) + R"(","resourceVersion":")" + std::to_string(version) +
         "\"}}";
}

Answer ListOf(int version, const std::vector<std::string>& things, const std::string& continue_token) {
  Answer out;
  out.body = R"({"kind":"ThingList","apiVersion":"example.test/v1","metadata":{"resourceVersion":")" +
             std::to_string(version) + R"(","continue":")" + continue_token + R"("},"items":[)";
  for (size_t i = 0; i < things.size(); ++i) out.body += (i > 0 ? "," : "") + things[i];
  out.body += "]}";
  return out;
}

std::string EventLine(const std::string& type, const std::string& object) {
  return R"({"type":")" + type + R"(","object":)" + object + "}\n";
}

std::string BookmarkLine(int version, bool initial_events_end) {
  return EventLine("BOOKMARK",
                   R"({"kind":"Thing","apiVersion":"example.test/v1","metadata":{"resourceVersion":")" +
                       std::to_string(version) + "\"" +
                       (initial_events_end ? R"(,"annotations":{"k8s.io/initial-events-end":"true"})" : "") + "}}");
}

namespace {
std::string StatusText(int code, const std::string& reason, const std::string& details) {
  return R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":"scripted )" + reason + R"(","reason":")" +
         reason + R"(","details":)" + details + R"(,"code":)" + std::to_string(code) + "}";
}
}  // namespace

std::string ErrorLine(int code, const std::string& reason) {
  return EventLine("ERROR", StatusText(code, reason, "{}"));
}

Answer ErrorAnswer(int code, const std::string& reason, const std::string& details) {
  Answer out;
  out.status = code;
  out.body = StatusText(code, reason, details);
  return out;
}

Answer WatchOf(std::vector<std::string> lines, Answer::End end) {
  Answer out;
  out.lines = std::move(lines);
  out.end = end;
  return out;
}

ScriptedServer::ScriptedServer() {
  server_ = std::make_unique<HttpServer>(
      HttpServerConfig{}, [this](const HttpRequest& request, HttpResponse& response) { Handle(request, response); });
  LK_CHECK(server_->Start().ok());
}

ScriptedServer::~ScriptedServer() { server_->Stop(); }

void ScriptedServer::OnList(Answer answer) {
  MutexLock lock(mutex_);
  lists_.push_back(std::move(answer));
}

void ScriptedServer::OnWatch(Answer answer) {
  MutexLock lock(mutex_);
  watches_.push_back(std::move(answer));
}

void ScriptedServer::OnOther(std::function<void(const HttpRequest&, HttpResponse&)> handler) {
  MutexLock lock(mutex_);
  other_ = std::move(handler);
}

std::string ScriptedServer::url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }

RestConfig ScriptedServer::Config() const {
  RestConfig config;
  config.server = url();
  config.credentials = NewFileCredentials({}, SystemClock());
  return config;
}

std::vector<std::string> ScriptedServer::Lists() const {
  MutexLock lock(mutex_);
  return list_queries_;
}

std::vector<std::string> ScriptedServer::Watches() const {
  MutexLock lock(mutex_);
  return watch_queries_;
}

Answer ScriptedServer::Next(std::deque<Answer>& script) {
  if (script.empty()) return ErrorAnswer(500, "NothingScripted");
  Answer answer = script.front();
  if (script.size() > 1) script.pop_front();
  return answer;
}

void ScriptedServer::Handle(const HttpRequest& request, HttpResponse& response) {
  Answer answer;
  {
    const std::string query = request.target.substr(std::min(request.target.find('?'), request.target.size()));
    MutexLock lock(mutex_);
    if (request.method != "GET" || request.path != "/apis/example.test/v1/things") {
      const auto other = other_;
      if (other) return other(request, response);
      response.status = 404;
      return;
    }
    const bool watch = request.Query("watch") == "true";
    (watch ? watch_queries_ : list_queries_).push_back(query);
    answer = Next(watch ? watches_ : lists_);
  }
  response.status = answer.status;
  response.headers = answer.headers;
  response.body = answer.body;
  if (!answer.body.empty()) return;
  response.stream = [answer](ChunkWriter& writer) {
    for (const std::string& line : answer.lines) {
      if (!writer.Write(line)) return false;
    }
    while (answer.end == Answer::End::kHold && writer.Alive()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));  // not synchronisation: the pause between two looks
    }
    return answer.end == Answer::End::kInOrder;
  };
}

}  // namespace lockkeeper::testing
