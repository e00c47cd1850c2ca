#include "reconcilers/front/admin_client.h"

#include <utility>

#include "api/base/json.h"
#include "api/transport/http_client.h"
#include "reconcilers/front/front_config.h"
#include "reconcilers/front/front_json.h"

namespace lockkeeper::front {
namespace {

constexpr std::chrono::seconds kCallTimeout{2};  // as the port says

}  // namespace

FrontAdminClient::FrontAdminClient(std::string base_dir) : base_dir_(std::move(base_dir)) {}

FrontAdminClient::~FrontAdminClient() = default;

std::shared_ptr<HttpClient> FrontAdminClient::ClientOf(const std::string& front) {
  const MutexLock lock(mutex_);
  auto& client = clients_[front];
  if (client == nullptr) {
    const size_t slash = front.find('/');
    HttpClientConfig config;
    config.base_url = "unix:" + (slash == std::string::npos
                                     ? FrontAdminPath(base_dir_, "", front)
                                     : FrontAdminPath(base_dir_, front.substr(0, slash), front.substr(slash + 1)));
    config.connect_timeout = kCallTimeout;
    config.max_idle = 1;
    client = std::make_shared<HttpClient>(std::move(config));
  }
  return client;
}

Result<Json> FrontAdminClient::Ask(const std::string& front, const ClientRequest& request) {
  const std::string attempt = request.method + " " + request.target + " of front " + front;
  const auto client = ClientOf(front);
  const auto response = client->Do(request);
  if (!response.ok()) return response.status().Annotate(attempt);
  auto json = Json::Parse(response->body);
  if (!json.ok()) return Status(Code::kInternal, attempt + ": answered no JSON: " + json.status().message());
  if (response->status != 200) return ErrorFromJson(*json, response->status).Annotate(attempt);
  return json;
}

Result<FrontState> FrontAdminClient::Get(const std::string& front) {
  ClientRequest request;
  request.target = "/status";
  request.timeout = kCallTimeout;
  LK_ASSIGN_OR_RETURN(const Json json, Ask(front, request));
  return StateFromJson(json);
}

Result<FrontState> FrontAdminClient::Set(const std::string& front, const FrontTarget& target) {
  ClientRequest request;
  request.method = "PUT";
  request.target = "/target";
  request.body = TargetToJson(target).Dump();
  request.timeout = kCallTimeout;
  LK_ASSIGN_OR_RETURN(const Json json, Ask(front, request));
  return StateFromJson(json);
}

Result<int> FrontAdminClient::Drain(const std::string& front, const std::string& slot, int64_t incarnation,
                                    Duration deadline) {
  ClientRequest request;
  request.method = "POST";
  request.target = "/drain";
  request.body =
      Json::MakeObject({{"slot", slot}, {"incarnation", incarnation}, {"deadlineSeconds", ToSeconds(deadline)}}).Dump();
  request.timeout = kCallTimeout;
  LK_ASSIGN_OR_RETURN(const Json json, Ask(front, request));
  return static_cast<int>(json.Get("draining").AsInt());
}

Status FrontAdminClient::Restart(const std::string& front) {
  ClientRequest request;
  request.method = "POST";
  request.target = "/restart";
  request.timeout = kCallTimeout;
  return Ask(front, request).status();
}

}  // namespace lockkeeper::front
