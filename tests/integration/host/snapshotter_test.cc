#include <atomic>
#include <thread>

#include "api/base/sqlite.h"
#include "api/server/store.h"
#include "reconcilers/host/host_files.h"
#include "tests/integration/host/temp_dir.h"

namespace lockkeeper {
namespace {

class SnapshotterTest : public TempDirTest {
 protected:
  void SetUp() override {
    TempDirTest::SetUp();
    apiserver::StoreOptions options;
    options.path = Path("store.db");
    Result<std::unique_ptr<apiserver::Store>> store = apiserver::Store::Open(options);
    ASSERT_TRUE(store.ok()) << store.status().ToString();
    store_ = std::move(*store);
  }
  Status Put(int n) {
    return store_->Write([&](apiserver::Txn& txn) {
      apiserver::PutOptions options;
      options.uid = "u" + std::to_string(n);
      return txn
          .Put({"", "/configmaps", "default", "c" + std::to_string(n)}, 0, "{\"n\":" + std::to_string(n) + "}", options)
          .status();
    });
  }
  std::unique_ptr<apiserver::Store> store_;
  std::unique_ptr<Snapshotter> snapshotter_ = NewSqliteSnapshotter();
};

TEST_F(SnapshotterTest, ALiveStoreIsCopiedUnderWritesToOneMoment) {
  std::atomic<bool> stop{false};
  std::atomic<int> written{0};
  std::thread writer([&] {
    for (int n = 0; !stop; ++n) {
      ASSERT_TRUE(Put(n).ok());
      written = n + 1;
    }
  });
  while (written < 50) std::this_thread::yield();
  const int before = written;
  const Result<SnapshotInfo> taken = snapshotter_->Take(store_->path(), Path("backups"), "b1");
  const int after = written;
  stop = true;
  writer.join();
  ASSERT_TRUE(taken.ok()) << taken.status().ToString();
  EXPECT_EQ(taken->reference, Path("backups/b1.db"));
  EXPECT_EQ(taken->sha256, *Sha256File(taken->reference));

  apiserver::StoreOptions options;
  options.path = Path("copy.db");
  ASSERT_TRUE(WriteFileAtomic(options.path, *ReadFile(taken->reference)).ok());
  const auto copy = std::move(*apiserver::Store::Open(options));
  int held = 0;
  ASSERT_TRUE(copy->Read([&](apiserver::Session& session) {
                    apiserver::ListQuery query;
                    query.resource = "/configmaps";
                    return session.List(query, [&](apiserver::Record&&, std::string_view) { return ++held > 0; });
                  })
                  .ok());
  EXPECT_GE(held, before);
  EXPECT_LE(held, after + 1);
  // What was written since is what the copy lacks.
  EXPECT_EQ(*snapshotter_->WritesSince(store_->path(), *taken), written - held);
  EXPECT_EQ(*snapshotter_->RevisionOf(*taken), *copy->Revision());
}

TEST_F(SnapshotterTest, WritesSinceCountsAndAnotherStoreCannotBeTold) {
  ASSERT_TRUE(Put(1).ok());
  const SnapshotInfo taken = *snapshotter_->Take(store_->path(), Path("backups"), "b1");
  EXPECT_EQ(*snapshotter_->WritesSince(store_->path(), taken), 0);
  ASSERT_TRUE(Put(2).ok() && Put(3).ok());
  EXPECT_EQ(*snapshotter_->WritesSince(store_->path(), taken), 2);
  {
    Result<sqlite::Db> other = sqlite::Db::Open(Path("other.db"), {});
    ASSERT_TRUE(other.ok() && other->Exec("CREATE TABLE kine (id INTEGER)").ok());
  }
  const SnapshotInfo foreign = *snapshotter_->Take(Path("other.db"), Path("backups"), "b2");
  EXPECT_EQ(*snapshotter_->WritesSince(Path("other.db"), foreign), -1);
}

TEST_F(SnapshotterTest, ADamagedStoreGivesNoSnapshot) {
  for (int n = 0; n < 200; ++n) ASSERT_TRUE(Put(n).ok());
  store_.reset();
  const std::string path = Path("store.db");
  std::string bytes = *ReadFile(path);
  for (size_t i = 12288; i < bytes.size() && i < 40960; ++i) bytes[i] = '\x5a';
  ASSERT_TRUE(WriteFileAtomic(path, bytes).ok());
  const Result<SnapshotInfo> taken = snapshotter_->Take(path, Path("backups"), "b1");
  EXPECT_FALSE(taken.ok());
  EXPECT_TRUE(ListDir(Path("backups"))->empty());
  ASSERT_TRUE(WriteFileAtomic(path, "no database").ok());
  EXPECT_EQ(snapshotter_->Take(path, Path("backups"), "b1").code(), Code::kCorrupt);
}

TEST_F(SnapshotterTest, AMissingStoreIsNamedAndNotMade) {
  const Result<SnapshotInfo> taken = snapshotter_->Take(Path("gone.db"), Path("backups"), "b1");
  EXPECT_EQ(taken.code(), Code::kNotFound);
  EXPECT_FALSE(PathExists(Path("gone.db")));
}

TEST_F(SnapshotterTest, TakingItAgainReplacesItAndLeftoversAreSwept) {  // H5
  ASSERT_TRUE(Put(1).ok());
  ASSERT_TRUE(snapshotter_->Take(store_->path(), Path("backups"), "b1").ok());
  ASSERT_TRUE(Put(2).ok());
  Write("backups/.taking-b1", "half of an interrupted one");
  const SnapshotInfo again = *snapshotter_->Take(store_->path(), Path("backups"), "b1");
  EXPECT_EQ(*snapshotter_->WritesSince(store_->path(), again), 0);
  Write("backups/.taking-b2.part", "half");
  ASSERT_TRUE(snapshotter_->Sweep(Path("backups")).ok());
  EXPECT_EQ(*ListDir(Path("backups")), std::vector<std::string>{"b1.db"});
  ASSERT_TRUE(snapshotter_->Delete(again).ok());
  EXPECT_TRUE(ListDir(Path("backups"))->empty());
  EXPECT_EQ(snapshotter_->Take(store_->path(), Path("backups"), "../x").code(), Code::kInvalid);
}

}  // namespace
}  // namespace lockkeeper
