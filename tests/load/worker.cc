#include "tests/load/worker.h"

#include <charconv>

namespace lockkeeper::load {
namespace {

// splitmix64: the mix is the same for the same seed, whichever thread takes which request.
uint64_t Mixed(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

Duration Since(Instant due) { return std::chrono::duration_cast<Duration>(std::chrono::steady_clock::now() - due); }

int64_t SequenceOf(const Json& object) {
  const std::string& text = object.At({"data", "sequence"}).AsString();
  int64_t sequence = -1;
  std::from_chars(text.data(), text.data() + text.size(), sequence);
  return sequence;
}

HttpClientConfig OneConnection(HttpClientConfig config) {
  config.max_idle = 1;
  config.max_idle_age = std::chrono::minutes(10);
  return config;
}

}  // namespace

Worker::Worker(Shared& shared, int number)
    : shared_(shared), number_(number), client_(OneConnection(shared.ClientConfig())) {}

void Worker::Run() {
  while (true) {
    Instant due;
    const uint64_t dice = Mixed(shared_.config.seed ^ static_cast<uint64_t>(shared_.Take(&due)));
    if (WaitCancelled(shared_.stop, due)) return;
    const bool write = static_cast<int>(dice % 100) < shared_.config.write_percent;
    if (!write && !objects_.empty()) {
      Read(dice >> 8, due);
      continue;
    }
    const bool full = objects_.size() >= static_cast<size_t>(shared_.config.objects_per_connection);
    if (!full || static_cast<int>((dice >> 8) % 100) < shared_.config.creates_percent) {
      Create(due);
      continue;
    }
    Object& object = objects_[(dice >> 16) % objects_.size()];
    if (object.in_doubt) {
      Get(object, due);
    } else {
      Update(object, due);
    }
  }
}

void Worker::Read(uint64_t dice, Instant due) {
  if (dice % 20 == 0) {
    List(due);
  } else {
    Get(objects_[(dice >> 8) % objects_.size()], due);
  }
}

void Worker::Get(Object& object, Instant due) {
  const ClientRequest request = shared_.Request("GET", shared_.ObjectPath(object.name));
  const auto response = client_.Do(request, &shared_.abandon);
  if (!response.ok()) return shared_.Unanswered(response.status(), false);
  const auto body = Json::Parse(response->body);
  const bool valid = response->status == 200 && body.ok();
  shared_.Answered(*response, valid, false, Since(due));
  if (!valid) return shared_.Note(ApiError(request, *response).ToString());
  const int64_t sequence = SequenceOf(*body);
  if (!journal_.MayHold(object.name, sequence)) {
    shared_.StaleRead(object.name + ": read " + std::to_string(sequence) + " after write " +
                      std::to_string(object.sequence) + " had been accepted");
    return;
  }
  object.sequence = sequence;
  object.resource_version = body->At({"metadata", "resourceVersion"}).AsString();
  object.in_doubt = false;
}

void Worker::List(Instant due) {
  const ClientRequest request =
      shared_.Request("GET", shared_.CollectionPath() + "?limit=20&labelSelector=" + shared_.Selector());
  const auto response = client_.Do(request, &shared_.abandon);
  if (!response.ok()) return shared_.Unanswered(response.status(), false);
  const auto body = Json::Parse(response->body);
  const bool valid = response->status == 200 && body.ok() && body->Get("items").IsArray();
  shared_.Answered(*response, valid, false, Since(due));
  if (!valid) shared_.Note(ApiError(request, *response).ToString());
}

void Worker::Create(Instant due) {
  Object object;
  object.name = shared_.run + "-" + std::to_string(number_) + "-" + std::to_string(created_++);
  const Json body = Body(object, 1);
  Write(shared_.Request("POST", shared_.CollectionPath(), &body), object, 1, due);
  // The first few are updated and read from now on; one in doubt is left alone.
  if (object.sequence == 1 && objects_.size() < static_cast<size_t>(shared_.config.objects_per_connection)) {
    objects_.push_back(std::move(object));
  }
}

void Worker::Update(Object& object, Instant due) {
  const int64_t sequence = object.sequence + 1;
  const Json body = Body(object, sequence);
  Write(shared_.Request("PUT", shared_.ObjectPath(object.name), &body), object, sequence, due);
}

void Worker::Write(const ClientRequest& request, Object& object, int64_t sequence, Instant due) {
  journal_.Attempt(object.name, sequence);
  object.in_doubt = true;
  const auto response = client_.Do(request, &shared_.abandon);
  if (!response.ok()) return shared_.Unanswered(response.status(), true);
  bool valid = response->status == 200 || response->status == 201;
  if (valid) {
    const auto body = Json::Parse(response->body);
    valid = body.ok() && SequenceOf(*body) == sequence && RevisionOf(*body) > 0;
    if (valid) object.resource_version = body->At({"metadata", "resourceVersion"}).AsString();
  } else if (response->status == 409 && response->retried) {
    // It went out twice; the conflict is with ourselves when the first one was carried out.
    valid = FoundWritten(object, sequence);
  }
  shared_.Answered(*response, valid, true, Since(due));
  if (!valid) return shared_.Note(ApiError(request, *response).ToString());
  int64_t revision = 0;
  std::from_chars(object.resource_version.data(), object.resource_version.data() + object.resource_version.size(),
                  revision);
  journal_.Accept(object.name, sequence, revision);
  object.sequence = sequence;
  object.in_doubt = false;
  shared_.AcceptedWrite();
}

bool Worker::FoundWritten(Object& object, int64_t sequence) {
  const auto response = client_.Do(shared_.Request("GET", shared_.ObjectPath(object.name)), &shared_.abandon);
  if (!response.ok() || response->status != 200) return false;
  const auto body = Json::Parse(response->body);
  if (!body.ok() || SequenceOf(*body) != sequence || RevisionOf(*body) == 0) return false;
  object.resource_version = body->At({"metadata", "resourceVersion"}).AsString();
  return true;
}

Json Worker::Body(const Object& object, int64_t sequence) const {
  Json metadata = Json::MakeObject({{"name", object.name}, {"namespace", shared_.config.ns}});
  metadata["labels"].Set("lk-load", shared_.run);
  if (!object.resource_version.empty()) metadata.Set("resourceVersion", object.resource_version);
  Json body = Json::MakeObject({{"apiVersion", "v1"}, {"kind", "ConfigMap"}, {"metadata", std::move(metadata)}});
  body["data"].Set("sequence", std::to_string(sequence));
  return body;
}

}  // namespace lockkeeper::load
