// Prints every verdict, tabled and generated, as one JSON array, for a run against a real server:
//   {kind, plural, name, stored, object, status, errors: [{reason, field, message}]}
#include <cstdio>

#include "tests/unit/types/verdicts.h"

namespace lockkeeper {
namespace {

Json ToJsonRow(const Verdict& verdict) {
  Json errors = Json::MakeArray();
  for (const FieldError& error : verdict.errors) {
    errors.Push(Json::MakeObject(
        {{"reason", FieldReasonName(error.reason)}, {"field", error.field}, {"message", error.message}}));
  }
  return Json::MakeObject({{"kind", verdict.kind->kind},
                           {"plural", verdict.kind->plural},
                           {"name", verdict.name},
                           {"stored", verdict.stored},
                           {"object", verdict.object},
                           {"status", verdict.status},
                           {"errors", std::move(errors)}});
}

int Main(const std::string& folder) {
  const auto verdicts = LoadVerdicts(folder);
  const auto bases = LoadBases(folder);
  if (!verdicts.ok() || !bases.ok()) {
    std::fprintf(stderr, "%s %s\n", verdicts.status().ToString().c_str(), bases.status().ToString().c_str());
    return 1;
  }
  Json out = Json::MakeArray();
  for (const Verdict& verdict : *verdicts) out.Push(ToJsonRow(verdict));
  for (const auto& [kind, base] : *bases) {
    for (const GeneratedVerdict& generated : GenerateVerdicts(*kind, base)) out.Push(ToJsonRow(generated.verdict));
  }
  std::printf("%s\n", out.Dump().c_str());
  return 0;
}

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: verdict_dump FOLDER\n");
    return 2;
  }
  return lockkeeper::Main(argv[1]);
}
