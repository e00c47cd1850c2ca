#include "tests/unit/apiserver/harness.h"

#include <gtest/gtest.h>

namespace lockkeeper::apiserver {

std::string Answer::Header(std::string_view name) const {
  for (const auto& [key, value] : http.headers) {
    if (key == name) return value;
  }
  return "";
}

bool Lines::Write(std::string_view chunk) {
  text_ += chunk;
  return true;
}

bool Lines::Alive() { return static_cast<size_t>(std::count(text_.begin(), text_.end(), '\n')) < enough_; }

std::vector<Json> Lines::events() const {
  std::vector<Json> events;
  size_t at = 0;
  while (at < text_.size()) {
    const size_t end = text_.find('\n', at);
    Result<Json> event = Json::Parse(text_.substr(at, end - at));
    EXPECT_TRUE(event.ok()) << event.status().ToString();
    if (event.ok()) events.push_back(std::move(*event));
    at = end + 1;
  }
  return events;
}

HandlerOptions Harness::Quick() {
  HandlerOptions options;
  options.future_patience = std::chrono::milliseconds(50);
  options.watch_look = std::chrono::milliseconds(20);
  options.bookmark_interval = std::chrono::milliseconds(100);
  return options;
}

Harness::Harness(Hooks hooks, HandlerOptions options) : clock_(*ParseTime("2026-11-30T12:00:00Z")) {
  StoreOptions store;
  store.path = dir_ / "store.db";
  store.clock = &clock_;
  Result<std::unique_ptr<Store>> opened = Store::Open(std::move(store));
  LK_CHECK(opened.ok());
  store_ = std::move(*opened);
  // Immutable, and its schemas take their time at -O0: one for all tests.
  static const Catalog catalog(ServedByDefault);
  authenticator_ = std::make_unique<TokenAuthenticator>(
      std::vector<TokenEntry>{{"secret-token", {"alice", "a1", {"system:masters"}}}});
  handler_ =
      std::make_unique<ApiHandler>(*store_, catalog, *authenticator_, clock_, std::move(options), std::move(hooks));
  collector_ = std::make_unique<Collector>(handler_->objects(), CollectorOptions{});
  EXPECT_EQ(
      Do("POST", "/api/v1/namespaces", Json::MakeObject({{"metadata", Json::MakeObject({{"name", "default"}})}})).code,
      201);
}

Harness::~Harness() {
  collector_.reset();
  store_->hub().Stop();
}

Answer Harness::Do(const std::string& method, const std::string& target, const std::string& body,
                   std::vector<std::pair<std::string, std::string>> headers) {
  HttpRequest request = MakeRequest(method, target, body);
  for (const auto& header : headers) request.headers.erase(header.first);
  if (!token.empty()) request.headers.emplace("authorization", "Bearer " + token);
  for (auto& [name, value] : headers) request.headers.emplace(name, value);
  Answer answer;
  handler_->Handle(request, answer.http);
  answer.code = answer.http.status;
  Result<Json> json = Json::Parse(answer.http.body);
  if (json.ok()) answer.json = std::move(*json);
  return answer;
}

Answer Harness::MergePatch(const std::string& target, const Json& body) {
  return Do("PATCH", target, body.Dump(), {{"content-type", "application/merge-patch+json"}});
}

std::vector<Json> Harness::Watch(const std::string& target, size_t lines) {
  Answer answer = Do("GET", target);
  EXPECT_EQ(answer.code, 200) << answer.message();
  if (!answer.http.stream) return {};
  Lines out(lines);
  answer.http.stream(out);
  return out.events();
}

Json ConfigMapBody(const std::string& name, const std::string& value) {
  return Json::MakeObject(
      {{"metadata", Json::MakeObject({{"name", name}})}, {"data", Json::MakeObject({{"k", value}})}});
}

Json UpgradeBody(const std::string& name) {
  return Json::MakeObject(
      {{"apiVersion", "lockkeeper.dev/v1alpha1"},
       {"kind", "Upgrade"},
       {"metadata", Json::MakeObject({{"name", name}})},
       {"spec", Json::MakeObject({{"serverRef", Json::MakeObject({{"name", "kcp"}})}, {"version", "v0.33.1"}})}});
}

}  // namespace lockkeeper::apiserver
