// The samples of manifests/: what a user copies is read by the structs and good by the schema.
#include <gtest/gtest.h>

#include <filesystem>

#include "api/base/file.h"
#include "api/types/backup.h"
#include "api/types/front.h"
#include "api/types/kind.h"
#include "api/types/release.h"
#include "api/types/server.h"
#include "api/types/slot.h"
#include "api/types/upgrade.h"
#include "tests/unit/types/from_yaml.h"

namespace lockkeeper {
namespace {

template <typename T>
Status ReadAs(const Json& object) {
  return FromJson<T>(object).status();
}

Status ReadByStruct(const Json& object) {
  const std::string& kind = object.Get("kind").AsString();
  if (kind == Server::kKind) return ReadAs<Server>(object);
  if (kind == Upgrade::kKind) return ReadAs<Upgrade>(object);
  if (kind == Roll::kKind) return ReadAs<Roll>(object);
  if (kind == Slot::kKind) return ReadAs<Slot>(object);
  if (kind == Front::kKind) return ReadAs<Front>(object);
  if (kind == Release::kKind) return ReadAs<Release>(object);
  if (kind == StoreBackup::kKind) return ReadAs<StoreBackup>(object);
  if (kind == StoreRestore::kKind) return ReadAs<StoreRestore>(object);
  return Status(Code::kInvalid, "no such kind: " + kind);
}

TEST(Samples, OfOurKindsAreReadAndGood) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(LK_SOURCE_DIR "/manifests")) {
    if (entry.path().extension() != ".yaml") continue;
    const Result<std::string> text = ReadFile(entry.path());
    ASSERT_TRUE(text.ok()) << text.status().ToString();
    for (Json object : FromYaml(*text)) {
      if (object.Get("apiVersion").AsString() != kApiVersion) continue;
      ++count;
      const std::string where = entry.path().filename().string() + " " + object.Get("kind").AsString();
      EXPECT_TRUE(ReadByStruct(object).ok()) << where << ": " << ReadByStruct(object).ToString();
      const KindInfo* kind = FindKind(kGroup, kVersion, object.Get("kind").AsString());
      ASSERT_NE(kind, nullptr) << where;
      std::vector<std::string> unknown;
      Prune(*kind, object, &unknown);
      EXPECT_EQ(unknown, std::vector<std::string>{}) << where;
      ApplyDefaults(*kind, object);
      for (const FieldError& error : Validate(*kind, object, nullptr, false))
        ADD_FAILURE() << where << " " << error.ToString();
      for (const FieldError& error : ValidateObjectMeta(*kind, object))
        ADD_FAILURE() << where << " " << error.ToString();
    }
  }
  EXPECT_GT(count, 0u) << "no samples found";
}

}  // namespace
}  // namespace lockkeeper
