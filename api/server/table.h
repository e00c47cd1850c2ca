// Table: objects as rows, the way `kubectl get` prints them.
//
// Purpose:   meta.k8s.io/v1 Table: column definitions, cells (dates are ages computed here), the object of each row.
// Ownership: borrows the KindInfo. Threads: immutable. Failure: a column whose path does not parse is left out.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "api/base/json.h"
#include "api/base/time.h"
#include "api/server/json_path.h"
#include "api/types/kind.h"

namespace lockkeeper::apiserver {

enum class IncludeObject { kNone, kMetadata, kObject };

class Table {
 public:
  explicit Table(const KindInfo& kind);

  // columnDefinitions.
  Json Columns() const;
  // {cells, object}; `object` has kind and apiVersion. Ages are as of `now`.
  Json Row(const Json& object, Time now, IncludeObject include) const;
  // A Table around `rows`; without columnDefinitions when `with_columns` is false.
  Json Make(Json rows, const std::string& resource_version, bool with_columns) const;

 private:
  struct Column {
    const PrinterColumn* info;
    std::optional<JsonPath> path;
  };
  Json Cell(const Column& column, const Json& object, Time now) const;

  const KindInfo& kind_;
  std::vector<Column> columns_;
};

// {kind: PartialObjectMetadata, apiVersion: meta.k8s.io/v1, metadata}.
Json PartialObjectMetadata(const Json& object);

}  // namespace lockkeeper::apiserver
