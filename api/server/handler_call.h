// Internal to the handler's translation units: one request on its way.
#pragma once

#include <string>

#include "api/server/handler.h"
#include "api/server/negotiate.h"
#include "api/server/selector.h"
#include "api/server/table.h"

namespace lockkeeper::apiserver {

struct ApiHandler::Call {
  const HttpRequest& request;
  HttpResponse& response;
  RequestInfo info;
  User user;
  bool authenticated = false;
  const ApiResource* resource = nullptr;
  Shape shape = Shape::kPlain;
  bool has_stream = false;

  const KindInfo& kind() const { return *resource->kind; }
};

struct ApiHandler::ListOptions {
  LabelSelector labels;
  FieldSelector fields;
  int64_t limit = 0;
  int64_t revision = 0;  // resourceVersion of the request, 0 for none and "0"
  bool exact = false;    // resourceVersionMatch=Exact
  bool any = false;      // resourceVersion "0"
  ListQuery query;
  bool continued = false;
  IncludeObject include = IncludeObject::kMetadata;

  bool Matches(const Json& object) const {
    return labels.Matches(object.At({"metadata", "labels"})) && fields.Matches(object);
  }
};

// Turns objects into what the client asked for.
class Presenter {
 public:
  Presenter(const ApiResource& resource, Shape shape, IncludeObject include, const Clock& clock)
      : resource_(resource), shape_(shape), include_(include), clock_(clock) {
    if (shape == Shape::kTable) table_.emplace(*resource.kind);
  }

  // The item's text within a list: an object, a row, or a PartialObjectMetadata.
  std::string Item(const Json& object) const;
  // The whole list around items that are separated by commas.
  std::string List(const std::string& items, const std::string& resource_version,
                   const std::string& continue_token) const;
  // One object as an answer of its own, or in a watch event: a Table has column definitions when `first`.
  std::string Object(const Json& object, bool first) const;
  std::string Bookmark(int64_t revision, bool initial_events_end) const;

 private:
  const ApiResource& resource_;
  const Shape shape_;
  const IncludeObject include_;
  const Clock& clock_;
  std::optional<Table> table_;
};

// metadata.continue: where a list goes on, at which revision.
struct ContinueToken {
  int64_t revision = 0;  // 0: at whatever is there now
  std::string ns;
  std::string name;

  std::string Encode() const;
  static std::optional<ContinueToken> Decode(const std::string& text);
};

}  // namespace lockkeeper::apiserver
