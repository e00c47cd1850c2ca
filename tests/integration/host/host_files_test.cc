#include "reconcilers/host/host_files.h"

#include <unistd.h>

#include "tests/integration/host/temp_dir.h"

namespace lockkeeper {
namespace {

class HostFilesTest : public TempDirTest {
 protected:
  SeedPlan Plan() const {
    return {Path("shared"), {"apiserver.crt", "sa.key", ".admin-token-store", "admin.kubeconfig"}, Path("slots/blue")};
  }
  void FillRoot(const std::string& content = "r") {
    for (const std::string& f : Plan().files) Write("slots/blue/" + f, content + f, 0600);
  }
  void FillShared(const std::string& content = "s") {
    for (const std::string& f : Plan().files) Write("shared/" + f, content + f, 0644);
  }
  std::unique_ptr<HostFiles> files_ = NewHostFiles();
};

TEST_F(HostFilesTest, MissingSharedFilesAreNamed) {
  EXPECT_EQ(files_->MissingShared(Plan())->size(), 4u);
  FillShared();
  ASSERT_TRUE(RemoveFile(Path("shared/sa.key")).ok());
  EXPECT_EQ(*files_->MissingShared(Plan()), std::vector<std::string>{"sa.key"});
  const Status seeded = files_->Seed(Plan());
  EXPECT_EQ(seeded.code(), Code::kNotFound);
  EXPECT_NE(seeded.message().find("sa.key"), std::string::npos);
}

TEST_F(HostFilesTest, SeedingCopiesTheBytesForTheOwnerAloneAndIsHarmlessTwice) {
  FillShared();
  EXPECT_FALSE(*files_->IsSeeded(Plan()));
  ASSERT_TRUE(files_->Seed(Plan()).ok());
  EXPECT_TRUE(*files_->IsSeeded(Plan()));
  for (const std::string& f : Plan().files) {
    EXPECT_EQ(*ReadFile(Path("slots/blue/" + f)), "s" + f);
    EXPECT_EQ(ModeOf(Path("slots/blue/" + f)), 0600u) << f;
  }
  struct stat before = {};
  stat(Path("slots/blue/sa.key").c_str(), &before);
  ASSERT_TRUE(files_->Seed(Plan()).ok());
  struct stat after = {};
  stat(Path("slots/blue/sa.key").c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
}

TEST_F(HostFilesTest, AnotherContentOrAWiderModeIsNotSeeded) {
  FillShared();
  ASSERT_TRUE(files_->Seed(Plan()).ok());
  Write("slots/blue/sa.key", "other!", 0600);
  EXPECT_FALSE(*files_->IsSeeded(Plan()));
  ASSERT_TRUE(files_->Seed(Plan()).ok());
  ASSERT_EQ(chmod(Path("slots/blue/sa.key").c_str(), 0640), 0);
  EXPECT_FALSE(*files_->IsSeeded(Plan()));
}

TEST_F(HostFilesTest, SeededFilesBelongToTheOwnerOfTheRoot) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  FillShared();
  ASSERT_TRUE(files_->EnsureDir(Path("slots/blue"), "nobody", "nogroup").ok());
  ASSERT_TRUE(files_->Seed(Plan()).ok());
  struct stat st = {};
  ASSERT_EQ(stat(Path("slots/blue/sa.key").c_str(), &st), 0);
  EXPECT_EQ(st.st_uid, 65534u);
}

TEST_F(HostFilesTest, ANameThatLeavesItsFolderIsRefused) {
  SeedPlan plan = Plan();
  plan.files = {"../../etc/shadow"};
  EXPECT_EQ(files_->Seed(plan).code(), Code::kInvalid);
  plan.files = {"/etc/shadow"};
  EXPECT_EQ(files_->Harvest(plan).code(), Code::kInvalid);
}

TEST_F(HostFilesTest, HarvestTakesTheFilesOfTheFirstSlot) {
  FillRoot();
  ASSERT_TRUE(files_->Harvest(Plan()).ok());
  EXPECT_EQ(*ReadFile(Path("shared/sa.key")), "rsa.key");
  EXPECT_EQ(ModeOf(Path("shared/sa.key")), 0600u);
  EXPECT_FALSE(PathExists(Path("shared.harvest")));
  ASSERT_TRUE(files_->Harvest(Plan()).ok());
  EXPECT_TRUE(files_->MissingShared(Plan())->empty());
}

TEST_F(HostFilesTest, HarvestNeverWritesOverAUsersFile) {
  FillRoot();
  Write("shared/apiserver.crt", "mine");
  ASSERT_TRUE(files_->Harvest(Plan()).ok());
  EXPECT_EQ(*ReadFile(Path("shared/apiserver.crt")), "mine");
  EXPECT_EQ(*ReadFile(Path("shared/sa.key")), "rsa.key");
  EXPECT_EQ(*ReadFile(Path("shared/admin.kubeconfig")), "radmin.kubeconfig");
}

TEST_F(HostFilesTest, TokenStoreAndKubeconfigAreHarvestedBothOrNeither) {
  FillRoot();
  Write("shared/admin.kubeconfig", "mine");
  const Status refused = files_->Harvest(Plan());
  EXPECT_EQ(refused.code(), Code::kPrecondition);
  EXPECT_NE(refused.message().find("both there or neither"), std::string::npos) << refused.message();
  EXPECT_FALSE(PathExists(Path("shared/.admin-token-store")));
  EXPECT_FALSE(PathExists(Path("shared/sa.key")));
  EXPECT_FALSE(PathExists(Path("shared.harvest")));
}

TEST_F(HostFilesTest, AHarvestThatDiedBetweenTheTwoIsCompleted) {
  FillRoot();
  Write("shared/admin.kubeconfig", "radmin.kubeconfig", 0600);  // ours: the bytes are the slot's
  ASSERT_TRUE(files_->Harvest(Plan()).ok());
  EXPECT_EQ(*ReadFile(Path("shared/.admin-token-store")), "r.admin-token-store");
}

TEST_F(HostFilesTest, AHarvestOfASlotThatLacksAFileTouchesNothing) {
  FillRoot();
  ASSERT_TRUE(RemoveFile(Path("slots/blue/.admin-token-store")).ok());
  const Status refused = files_->Harvest(Plan());
  EXPECT_EQ(refused.code(), Code::kNotFound);
  EXPECT_NE(refused.message().find(".admin-token-store"), std::string::npos);
  EXPECT_FALSE(PathExists(Path("shared")));
}

TEST_F(HostFilesTest, AnEmptyOrAbsentFolderIsEmpty) {
  EXPECT_TRUE(*files_->IsEmptyDir(Path("none")));
  ASSERT_TRUE(MakeDirs(Path("some")).ok());
  EXPECT_TRUE(*files_->IsEmptyDir(Path("some")));
  Write("some/.hidden", "");
  EXPECT_FALSE(*files_->IsEmptyDir(Path("some")));
  EXPECT_FALSE(files_->IsEmptyDir(Path("some/.hidden")).ok());
}

TEST_F(HostFilesTest, ClearingARootSparesWhatLinksLeadToAndRefusesTheMachine) {
  Write("keep/file", "x");
  FillRoot();
  ASSERT_EQ(symlink(Path("keep").c_str(), Path("slots/blue/link").c_str()), 0);
  ASSERT_TRUE(files_->ClearRoot(Path("slots/blue")).ok());
  EXPECT_TRUE(*files_->IsEmptyDir(Path("slots/blue")));
  EXPECT_TRUE(PathExists(Path("keep/file")));
  for (const char* root : {"", "/", "/etc", "relative/x", "/a/../b"}) {
    EXPECT_EQ(files_->ClearRoot(root).code(), Code::kInvalid) << root;
  }
  EXPECT_TRUE(files_->ClearRoot(Path("slots/none")).ok());
}

TEST_F(HostFilesTest, AMissingCommandSaysWhatLiesThereInstead) {
  Write("rel/bin/kine", "x", 0755);
  const Result<std::string> hash = files_->Sha256Executable(Path("rel/bin/kcp"));
  EXPECT_EQ(hash.code(), Code::kNotFound);
  EXPECT_NE(hash.status().message().find("rel/bin/kcp does not exist (its folder holds: kine)"), std::string::npos)
      << hash.status().message();
  Write("rel/bin/kcp", "x", 0644);
  EXPECT_EQ(files_->Sha256Executable(Path("rel/bin/kcp")).code(), Code::kForbidden);
  EXPECT_EQ(*files_->Sha256Executable(Path("rel/bin/kine")), Sha256Hex("x"));
  EXPECT_EQ(files_->Sha256Executable(Path("rel/bin")).code(), Code::kInvalid);
  Write("rel/bin/kine", "another", 0755);
  EXPECT_EQ(*files_->Sha256Executable(Path("rel/bin/kine")), Sha256Hex("another"));
}

TEST_F(HostFilesTest, ATokenIsReadByContext) {
  const std::string path = Write("admin.kubeconfig", R"(
apiVersion: v1
kind: Config
current-context: root
contexts:
- {name: root, context: {cluster: c, user: kcp-admin}}
- {name: system, context: {cluster: c, user: shard-admin}}
- {name: bare, context: {cluster: c, user: nobody}}
users:
- {name: kcp-admin, user: {token: one}}
- {name: shard-admin, user: {token: two}}
- {name: nobody, user: {}}
)");
  EXPECT_EQ(*files_->ReadToken(path, ""), "one");
  EXPECT_EQ(*files_->ReadToken(path, "system"), "two");
  EXPECT_EQ(files_->ReadToken(path, "bare").code(), Code::kNotFound);
  EXPECT_EQ(files_->ReadToken(path, "none").code(), Code::kNotFound);
  EXPECT_EQ(files_->ReadToken(Path("gone"), "").code(), Code::kNotFound);
  Write("broken", "{:");
  EXPECT_EQ(files_->ReadToken(Path("broken"), "").code(), Code::kInvalid);
}

TEST_F(HostFilesTest, TheMembersTokenIsReplacedAtOnceOrLeftAsItIs) {
  const std::string path = Path("members/token");
  ASSERT_TRUE(files_->WriteToken(path, "secret").ok());
  EXPECT_EQ(ModeOf(path), 0600u);
  struct stat before = {};
  stat(path.c_str(), &before);
  ASSERT_TRUE(files_->WriteToken(path, "secret").ok());
  struct stat after = {};
  stat(path.c_str(), &after);
  EXPECT_EQ(before.st_ino, after.st_ino);
  ASSERT_TRUE(files_->WriteToken(path, "new").ok());
  EXPECT_EQ(*ReadFile(path), "new");
  EXPECT_EQ(*files_->FileSha256(path), Sha256Hex("new"));
}

TEST_F(HostFilesTest, ALinkIsSwappedButNothingElseIsReplacedByOne) {
  ASSERT_TRUE(files_->PointLink(Path("srv/current"), "/releases/a").ok());
  ASSERT_TRUE(files_->PointLink(Path("srv/current"), "/releases/b").ok());
  char target[64] = {};
  ASSERT_GT(readlink(Path("srv/current").c_str(), target, sizeof target - 1), 0);
  EXPECT_STREQ(target, "/releases/b");
  Write("srv/tool", "theirs");
  EXPECT_EQ(files_->PointLink(Path("srv/tool"), "/releases/a").code(), Code::kPrecondition);
  EXPECT_EQ(*ReadFile(Path("srv/tool")), "theirs");
}

TEST_F(HostFilesTest, FreeSpaceIsThatOfTheNearestFolder) { EXPECT_GT(*files_->FreeBytes(Path("not/yet/there")), 0); }

TEST_F(HostFilesTest, AnUnknownOwnerIsNamed) {
  const Status status = files_->EnsureDir(Path("x"), "no-such-user", "");
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find("no-such-user"), std::string::npos);
}

}  // namespace
}  // namespace lockkeeper
