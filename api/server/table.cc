#include "api/server/table.h"

#include <cmath>
#include <utility>

namespace lockkeeper::apiserver {
namespace {

// "3h5m"; a time of the future or none at all reads "<invalid>" (crd-idioms 4.2).
Json Age(const std::string& text, Time now) {
  if (text.empty()) return "<unknown>";
  const Result<Time> time = ParseTime(text);
  if (!time.ok()) return "<invalid>";
  const Duration age = now - *time;
  // kubectl forgives two seconds of skew.
  if (age < -Seconds(2)) return "<invalid>";
  return age < Seconds(1) ? "0s" : FormatAge(age);  // a Table counts whole seconds
}

}  // namespace

Json PartialObjectMetadata(const Json& object) {
  return Json::MakeObject(
      {{"kind", "PartialObjectMetadata"}, {"apiVersion", "meta.k8s.io/v1"}, {"metadata", object.Get("metadata")}});
}

Table::Table(const KindInfo& kind) : kind_(kind) {
  for (const PrinterColumn& info : kind.columns) {
    Column column{&info, std::nullopt};
    if (info.cell == nullptr) {
      Result<JsonPath> path = JsonPath::Parse(info.json_path);
      if (!path.ok()) continue;
      column.path = std::move(*path);
    }
    columns_.push_back(std::move(column));
  }
}

Json Table::Columns() const {
  Json columns = Json::MakeArray();
  if (kind_.name_column) {
    columns.Push(Json::MakeObject({{"name", "Name"},
                                   {"type", "string"},
                                   {"format", "name"},
                                   {"description", "Name is unique within a namespace."},
                                   {"priority", 0}}));
  }
  for (const Column& column : columns_) {
    columns.Push(Json::MakeObject({{"name", column.info->name},
                                   {"type", column.info->type},
                                   {"format", column.info->format},
                                   {"description", column.info->description},
                                   {"priority", column.info->priority}}));
  }
  return columns;
}

Json Table::Cell(const Column& column, const Json& object, Time now) const {
  Json value;
  if (column.info->cell != nullptr) {
    value = column.info->cell(object);
  } else {
    const std::vector<const Json*> found = column.path->Find(object);
    if (found.empty()) return nullptr;
    value = *found.front();
  }
  const std::string& type = column.info->type;
  if (type == "date") return Age(value.AsString(), now);
  if (type == "integer") {
    if (value.IsInt()) return value;
    if (value.IsDouble() && value.AsDouble() == std::floor(value.AsDouble())) return value.AsInt();
    return nullptr;
  }
  if (type == "number") return value.IsNumber() ? value : Json();
  if (type == "boolean") return value.IsBool() ? value : Json();
  if (value.IsNull() || value.IsString()) return value;
  return value.Dump();
}

Json Table::Row(const Json& object, Time now, IncludeObject include) const {
  Json cells = Json::MakeArray();
  if (kind_.name_column) cells.Push(object.At({"metadata", "name"}));
  for (const Column& column : columns_) cells.Push(Cell(column, object, now));
  Json row = Json::MakeObject({{"cells", std::move(cells)}});
  switch (include) {
    case IncludeObject::kNone: row["object"] = nullptr; break;
    case IncludeObject::kMetadata: row["object"] = PartialObjectMetadata(object); break;
    case IncludeObject::kObject: row["object"] = object; break;
  }
  return row;
}

Json Table::Make(Json rows, const std::string& resource_version, bool with_columns) const {
  Json metadata = Json::MakeObject();
  if (!resource_version.empty()) metadata["resourceVersion"] = resource_version;
  return Json::MakeObject({{"kind", "Table"},
                           {"apiVersion", "meta.k8s.io/v1"},
                           {"metadata", std::move(metadata)},
                           {"columnDefinitions", with_columns ? Columns() : Json()},
                           {"rows", std::move(rows)}});
}

}  // namespace lockkeeper::apiserver
