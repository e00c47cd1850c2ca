#include "controller/cache.h"

#include <gtest/gtest.h>

#include "tests/unit/controller/memory_api.h"

namespace lockkeeper {
namespace {

const Resource kThings{"example.test", "v1", "things", "Thing", true};

Json Thing(const std::string& name, int version, const std::string& uid = "", const std::string& owner = "") {
  Json metadata = Json::MakeObject({{"namespace", "ns"},
                                    {"name", name},
                                    {"uid", uid.empty() ? "uid-" + name : uid},
                                    {"resourceVersion", std::to_string(version)},
                                    {"labels", Json::MakeObject({{"color", "red"}})},
                                    {"managedFields", Json::MakeArray({"noise"})}});
  if (!owner.empty()) {
    metadata.Set("ownerReferences",
                 Json::MakeArray({Json::MakeObject(
                     {{"kind", "Owner"}, {"name", owner}, {"uid", "uid-" + owner}, {"controller", true}})}));
  }
  return Json::MakeObject({{"apiVersion", "example.test/v1"}, {"kind", "Thing"}, {"metadata", std::move(metadata)}});
}

ObjectPtr At(const std::string& name, int version, const std::string& uid = "") {
  return CachedObject::Of(Thing(name, version, uid));
}

class CacheTest : public ::testing::Test {
 protected:
  void SetUp() override {
    cache_.AddHandler([this](const CacheEvent& event) {
      const char* const kinds[] = {"+", "~", "-"};
      log_ += kinds[static_cast<int>(event.type)] + event.object->key().name + event.object->resource_version();
      if (event.initial) log_ += "i";
      if (event.unchanged) log_ += "=";
      if (event.own_write) log_ += "o";
      log_ += " ";
    });
  }
  std::string Log() { return std::exchange(log_, ""); }

  Cache cache_{kThings};
  std::string log_;
};

TEST_F(CacheTest, TheFirstListIsToldAsInitialAndThenTheCacheIsSynced) {
  EXPECT_FALSE(cache_.HasSynced());
  cache_.Replace({At("a", 5), At("b", 3)}, "7");
  EXPECT_TRUE(cache_.HasSynced());
  EXPECT_EQ(Log(), "+a5i +b3i ");
  EXPECT_EQ(cache_.resource_version(), "7");
  EXPECT_EQ(cache_.Get({"ns", "a"})->resource_version(), "5");
  EXPECT_EQ(cache_.List("").size(), 2u);
  EXPECT_EQ(cache_.List("other").size(), 0u);
}

TEST_F(CacheTest, AReplaceTellsOfTheVanishedAndMarksTheUnchanged) {
  cache_.Replace({At("a", 5), At("b", 3), At("c", 4)}, "7");
  Log();
  cache_.Replace({At("a", 9), At("c", 4)}, "9");
  EXPECT_EQ(Log(), "~a9 ~c4= -b3 ");
  EXPECT_EQ(cache_.Get({"ns", "b"}), nullptr);
}

TEST_F(CacheTest, DeletedAndMadeAgainUnderTheSameNameIsTwoEvents) {
  cache_.Replace({At("a", 5, "first")}, "5");
  Log();
  cache_.Apply(WatchEventType::kModified, At("a", 9, "second"));
  EXPECT_EQ(Log(), "-a5 +a9 ");
  EXPECT_EQ(cache_.Get({"ns", "a"})->uid(), "second");
}

TEST_F(CacheTest, OwnWritesAreReadBackAtOnceAndTheirEchoIsTold) {
  cache_.Replace({At("a", 5)}, "5");
  Log();
  cache_.RecordWrite(Thing("a", 8));
  EXPECT_EQ(cache_.Get({"ns", "a"})->resource_version(), "8");
  EXPECT_EQ(Log(), "");
  cache_.Apply(WatchEventType::kModified, At("a", 8));
  EXPECT_EQ(Log(), "~a8o ");
}

TEST_F(CacheTest, AnEventOlderThanAnOwnWriteDoesNotTakeItBack) {
  cache_.Replace({At("a", 5)}, "5");
  cache_.RecordWrite(Thing("a", 8));
  Log();
  cache_.Apply(WatchEventType::kModified, At("a", 6));
  EXPECT_EQ(cache_.Get({"ns", "a"})->resource_version(), "8");
  EXPECT_EQ(Log(), "~a8 ");
  cache_.Apply(WatchEventType::kModified, At("a", 9));
  EXPECT_EQ(cache_.Get({"ns", "a"})->resource_version(), "9");
}

TEST_F(CacheTest, AnOwnCreateIsThereAtOnceAndToldOnceAsAdded) {
  cache_.Replace({}, "5");
  cache_.RecordWrite(Thing("a", 8));
  EXPECT_NE(cache_.Get({"ns", "a"}), nullptr);
  cache_.Replace({}, "6");  // a list from before
  EXPECT_NE(cache_.Get({"ns", "a"}), nullptr);
  cache_.Apply(WatchEventType::kAdded, At("a", 8));
  EXPECT_EQ(Log(), "+a8o ");
}

TEST_F(CacheTest, AnOwnDeleteIsGoneAtOnceStaysGoneAndIsTold) {
  cache_.Replace({At("a", 5)}, "5");
  Log();
  cache_.RecordDelete({"ns", "a"}, "uid-a");
  EXPECT_EQ(cache_.Get({"ns", "a"}), nullptr);
  cache_.Apply(WatchEventType::kModified, At("a", 6));  // from before the delete
  EXPECT_EQ(cache_.Get({"ns", "a"}), nullptr);
  cache_.Apply(WatchEventType::kDeleted, At("a", 7));
  EXPECT_EQ(Log(), "-a7 ");
  cache_.Apply(WatchEventType::kAdded, At("a", 9, "other"));
  EXPECT_EQ(Log(), "+a9 ");
}

TEST_F(CacheTest, WhenTheVersionWentBackOwnWritesThereAreForgotten) {
  cache_.Replace({At("a", 50)}, "50");
  cache_.RecordWrite(Thing("a", 80));
  cache_.RecordWrite(Thing("b", 81));
  cache_.Replace({At("a", 20)}, "30");
  EXPECT_EQ(cache_.Get({"ns", "a"})->resource_version(), "20");
  EXPECT_EQ(cache_.Get({"ns", "b"}), nullptr);
}

TEST_F(CacheTest, OwnersAndUserIndexesFollowEveryChange) {
  Cache cache(kThings);
  cache.AddIndex("color", [](const CachedObject& object) { return std::vector<std::string>{object.Label("color")}; });
  cache.Replace({CachedObject::Of(Thing("a", 1, "", "x")), CachedObject::Of(Thing("b", 2, "", "y"))}, "2");
  ASSERT_EQ(cache.OwnedBy("uid-x").size(), 1u);
  EXPECT_EQ(cache.OwnedBy("uid-x")[0]->key().name, "a");
  EXPECT_EQ(cache.ByIndex("color", "red").size(), 2u);
  cache.Apply(WatchEventType::kModified, CachedObject::Of(Thing("a", 3, "", "y")));
  EXPECT_EQ(cache.OwnedBy("uid-x").size(), 0u);
  EXPECT_EQ(cache.OwnedBy("uid-y").size(), 2u);
  cache.Apply(WatchEventType::kDeleted, CachedObject::Of(Thing("b", 4, "", "y")));
  EXPECT_EQ(cache.OwnedBy("uid-y").size(), 1u);
  EXPECT_EQ(cache.OwnedBy("uid-y")[0]->ControllerOwner()->name, "y");
}

TEST_F(CacheTest, ManagedFieldsAreNotKeptAndBytesAreCounted) {
  cache_.Replace({At("a", 1)}, "1");
  const ObjectPtr object = cache_.Get({"ns", "a"});
  EXPECT_EQ(object->text().find("managedFields"), std::string::npos);
  EXPECT_EQ(object->Parse().At({"metadata", "labels", "color"}).AsString(), "red");
  EXPECT_EQ(cache_.bytes(), object->text().size());
  cache_.Apply(WatchEventType::kDeleted, At("a", 2));
  EXPECT_EQ(cache_.bytes(), 0u);
}

TEST_F(CacheTest, ALateHandlerIsToldOfWhatIsThere) {
  cache_.Replace({At("a", 1)}, "1");
  int told = 0;
  cache_.AddHandler([&](const CacheEvent& event) { told += event.initial ? 1 : 100; });
  EXPECT_EQ(told, 1);
}

TEST_F(CacheTest, WaitingForAVersionEndsWithABookmark) {
  cache_.Replace({}, "5");
  EXPECT_TRUE(cache_.WaitForVersion("5", Duration(0)));
  EXPECT_FALSE(cache_.WaitForVersion("6", Duration(0)));
  cache_.Bookmark("10");
  EXPECT_TRUE(cache_.WaitForVersion("9", Duration(0)));
}

TEST_F(CacheTest, WritesOfObjectsThatTheWatchDoesNotGiveAreNotKept) {
  Cache cache(kThings, "ns", [](const CachedObject& object) { return object.Label("color") == "blue"; });
  cache.Replace({}, "1");
  cache.RecordWrite(Thing("a", 2));
  EXPECT_EQ(cache.size(), 0u);
}

TEST(WriteThroughApiTest, EveryWriteIsSeenByTheCacheOfItsResource) {
  MemoryApi memory;
  WriteThroughApi api(memory);
  Cache cache(kThings);
  Cache other({"", "v1", "others", "Other", true});
  api.AddCache(cache);
  api.AddCache(other);
  cache.Replace({}, "1");
  other.Replace({}, "1");
  auto created = api.Create(kThings, Thing("a", 0));
  ASSERT_TRUE(created.ok());
  ASSERT_NE(cache.Get({"ns", "a"}), nullptr);
  auto patched = api.Patch(kThings, {"ns", "a"}, PatchType::kMerge,
                           Json::MakeObject({{"status", Json::MakeObject({{"x", 1}})}}), "status");
  ASSERT_TRUE(patched.ok());
  EXPECT_EQ(cache.Get({"ns", "a"})->Parse().At({"status", "x"}).AsInt(), 1);
  ASSERT_TRUE(api.Delete(kThings, {"ns", "a"}, {.uid = UidOf(*created)}).ok());
  EXPECT_EQ(cache.Get({"ns", "a"}), nullptr);
  EXPECT_EQ(other.size(), 0u);
}

TEST(CacheTrim, WhatNoReaderNeedsIsKeptNeitherOfAListNorOfAnOwnWrite) {
  Cache cache(kThings, "", nullptr, KeepOnly({{"spec", "host"}}));
  Json thing = Thing("a", 1, "", "x");
  thing["metadata"].Set("annotations", Json::MakeObject({{"long", "story"}}));
  thing.Set("spec", Json::MakeObject({{"host", "h"}, {"more", "text"}}));
  thing.Set("status", Json::MakeObject({{"long", "story"}}));
  cache.Replace({cache.Make(thing)}, "1");
  const auto kept = [&] { return cache.Get({"ns", "a"})->Parse(); };
  EXPECT_EQ(kept().Get("spec"), Json::MakeObject({{"host", "h"}}));
  EXPECT_FALSE(kept().Has("status"));
  EXPECT_FALSE(kept().Get("metadata").Has("annotations"));
  EXPECT_EQ(cache.OwnedBy("uid-x").size(), 1u);
  thing["metadata"].Set("resourceVersion", "2");
  cache.RecordWrite(thing);
  EXPECT_EQ(cache.Get({"ns", "a"})->version(), 2);
  EXPECT_FALSE(kept().Has("status"));
}

}  // namespace
}  // namespace lockkeeper
