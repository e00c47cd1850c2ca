// Prints every verdict, tabled and generated, as one JSON array, for a run against a real server:
//   {kind, plural, name, stored, object, status, errors: [{reason, field, message}]}
// With a number behind the folder also that many random writes a kind, creates and updates.
#include <cstdio>
#include <cstdlib>

#include "tests/unit/types/random_object.h"
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

// Random members of the spec, on top of an object that is good.
Verdict RandomWrite(const KindInfo& kind, const Json& base, RandomObject* random, int index) {
  Verdict verdict;
  verdict.kind = &kind;
  verdict.name = "random write " + std::to_string(index);
  verdict.object = base;
  const Json made = random->Make(*kind.type);
  int count = 0;
  for (const auto& [name, value] : made.Get("spec").AsObject()) {
    if ((++count + index) % 3 == 0) verdict.object["spec"].Set(name, value);
  }
  if (index % 2 == 0) verdict.stored = base;
  verdict.errors = Judge(verdict);
  return verdict;
}

int Main(const std::string& folder, int random_writes) {
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
  RandomObject random(TestSeed(), false);
  for (const auto& [kind, base] : *bases) {
    for (int i = 0; i < random_writes; ++i) out.Push(ToJsonRow(RandomWrite(*kind, base, &random, i)));
  }
  std::printf("%s\n", out.Dump().c_str());
  return 0;
}

}  // namespace
}  // namespace lockkeeper

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    std::fprintf(stderr, "usage: verdict_dump FOLDER [RANDOM_WRITES]\n");
    return 2;
  }
  return lockkeeper::Main(argv[1], argc > 2 ? std::atoi(argv[2]) : 0);
}
