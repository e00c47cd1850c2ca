#include "api/server/negotiate.h"

#include <algorithm>
#include <cctype>

namespace lockkeeper::apiserver {
namespace {

std::string_view Trim(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

std::string Lower(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

// Calls `each` for the trimmed parts of `text` between `separator`.
template <typename Fn>
void ForEach(std::string_view text, char separator, Fn each) {
  while (true) {
    const size_t end = text.find(separator);
    each(Trim(text.substr(0, end)));
    if (end == std::string_view::npos) return;
    text.remove_prefix(end + 1);
  }
}

std::optional<Shape> ShapeOf(const MediaRange& range) {
  auto get = [&](const char* name) {
    const auto it = range.parameters.find(name);
    return it == range.parameters.end() ? std::string() : it->second;
  };
  const std::string as = get("as");
  if (as.empty()) return Shape::kPlain;
  const std::string group = get("g");
  const std::string version = get("v");
  if (group == "meta.k8s.io" && (version == "v1" || version == "v1beta1")) {
    if (as == "Table") return Shape::kTable;
    if (as == "PartialObjectMetadata" || as == "PartialObjectMetadataList") return Shape::kPartialMetadata;
  }
  if (group == "apidiscovery.k8s.io" && as == "APIGroupDiscoveryList") {
    if (version == "v2") return Shape::kDiscoveryV2;
    if (version == "v2beta1") return Shape::kDiscoveryV2Beta1;
  }
  return std::nullopt;
}

}  // namespace

std::vector<MediaRange> ParseAccept(std::string_view header) {
  std::vector<MediaRange> ranges;
  ForEach(header, ',', [&](std::string_view item) {
    if (item.empty()) return;
    MediaRange range;
    bool first = true;
    ForEach(item, ';', [&](std::string_view part) {
      if (first) {
        range.type = Lower(part);
        first = false;
        return;
      }
      const size_t equals = part.find('=');
      if (equals == std::string_view::npos) return;
      range.parameters[Lower(Trim(part.substr(0, equals)))] = std::string(Trim(part.substr(equals + 1)));
    });
    ranges.push_back(std::move(range));
  });
  return ranges;
}

std::optional<Shape> NegotiateShape(std::string_view accept, const std::vector<Shape>& offered) {
  const std::vector<MediaRange> ranges = ParseAccept(accept);
  if (ranges.empty()) return Shape::kPlain;
  for (const MediaRange& range : ranges) {
    if (range.type != "application/json" && range.type != "*/*" && range.type != "application/*") continue;
    const std::optional<Shape> shape = ShapeOf(range);
    if (!shape) continue;
    if (*shape == Shape::kPlain || std::find(offered.begin(), offered.end(), *shape) != offered.end()) return shape;
  }
  return std::nullopt;
}

std::string MediaType(std::string_view content_type) {
  return Lower(Trim(content_type.substr(0, content_type.find(';'))));
}

}  // namespace lockkeeper::apiserver
