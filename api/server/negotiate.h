// Negotiation: how a client wants an answer (Accept) and what it sent (Content-Type).
// Ownership: values. Threads: pure. Failure: nullopt for an Accept that JSON cannot serve (406).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lockkeeper::apiserver {

enum class Shape { kPlain, kTable, kPartialMetadata, kDiscoveryV2, kDiscoveryV2Beta1 };

// One media range: "application/json;as=Table;v=v1;g=meta.k8s.io".
struct MediaRange {
  std::string type;  // lower-case, without parameters
  std::map<std::string, std::string> parameters;
};
std::vector<MediaRange> ParseAccept(std::string_view header);

// The first shape of `offered` (beside kPlain, which always is) that the header asks for in JSON; ranges that want
// another format or an unknown `as=` are passed over. An empty header: kPlain.
std::optional<Shape> NegotiateShape(std::string_view accept, const std::vector<Shape>& offered);

// "application/json" of "application/json; charset=utf-8".
std::string MediaType(std::string_view content_type);

}  // namespace lockkeeper::apiserver
