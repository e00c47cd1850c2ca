// The files of a root directory (2.14 to 2.17) and the version in an executable.
#include "api/server/kcp/root_files.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "api/base/file.h"
#include "api/server/kcp/build_version.h"

namespace lockkeeper::kcp {
namespace {

class RootFilesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "root_files_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    dir_ = pattern;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  Options At(const std::string& slot) const {
    Options options;
    options.root_directory = options.cert_dir = JoinPath(dir_, slot);
    options.bind_address = "127.0.0.1";
    return options;
  }
  static Result<RootFiles> Start(const Options& options, int port = 6443) {
    LK_ASSIGN_OR_RETURN(RootFiles files, PrepareRootFiles(options));
    LK_RETURN_IF_ERROR(WriteAdminKubeconfig(options, port, &files));
    return files;
  }
  std::string Path(const std::string& slot, const std::string& name) const {
    return JoinPath(JoinPath(dir_, slot), name);
  }
  void Copy(const std::string& from, const std::string& to) {
    const auto content = ReadFile(from);
    ASSERT_TRUE(content.ok());
    ASSERT_TRUE(MakeDirs(DirName(to)).ok());
    ASSERT_TRUE(WriteFileAtomic(to, *content, 0600).ok());
  }

  std::string dir_;
};

TEST_F(RootFilesTest, AFirstStartMakesAllOfThem) {
  const auto files = Start(At("blue"));
  ASSERT_TRUE(files.ok()) << files.status().ToString();
  for (const char* name : {"apiserver.crt", "apiserver.key", "sa.key", ".admin-token-store", "admin.kubeconfig"}) {
    EXPECT_TRUE(PathExists(Path("blue", name))) << name;
  }
  struct stat st = {};
  ASSERT_EQ(stat(Path("blue", "admin.kubeconfig").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u);
  ASSERT_EQ(stat(Path("blue", "").c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0700u);
  const auto hash = ReadFile(Path("blue", ".admin-token-store"));
  ASSERT_TRUE(hash.ok());
  EXPECT_EQ(hash->size(), 32u) << "raw bytes";
  EXPECT_EQ(files->shard_admin_hash, Sha256Hex(files->shard_admin_token));
}

TEST_F(RootFilesTest, ARestartKeepsShardAdminAndRenewsKcpAdmin) {  // 2.15
  const auto first = Start(At("blue"));
  const auto second = Start(At("blue"), 7000);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->shard_admin_token, second->shard_admin_token);
  EXPECT_NE(first->kcp_admin_token, second->kcp_admin_token);
  EXPECT_EQ(first->certificate_pem, second->certificate_pem);
  const auto text = ReadFile(Path("blue", "admin.kubeconfig"));
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("https://127.0.0.1:7000/clusters/root"), std::string::npos);
  EXPECT_NE(text->find(second->kcp_admin_token), std::string::npos);
  EXPECT_EQ(text->find(first->kcp_admin_token), std::string::npos);
}

TEST_F(RootFilesTest, ASecondSlotWithTheSharedFilesHasTheSameShardAdmin) {  // 2.19
  const auto blue = Start(At("blue"));
  ASSERT_TRUE(blue.ok());
  for (const char* name : {"apiserver.crt", "apiserver.key", "sa.key", ".admin-token-store", "admin.kubeconfig"}) {
    Copy(Path("blue", name), Path("green", name));
  }
  const auto green = Start(At("green"));
  ASSERT_TRUE(green.ok()) << green.status().ToString();
  EXPECT_EQ(blue->shard_admin_token, green->shard_admin_token);
  EXPECT_EQ(blue->certificate_pem, green->certificate_pem);
}

TEST_F(RootFilesTest, TheTokenStoreWithoutTheKubeconfigIsRefused) {  // 2.16
  ASSERT_TRUE(Start(At("blue")).ok());
  ASSERT_TRUE(RemoveFile(Path("blue", "admin.kubeconfig")).ok());
  const auto again = Start(At("blue"));
  ASSERT_EQ(again.code(), Code::kPrecondition);
  EXPECT_NE(again.status().message().find("cannot create the 'admin.kubeconfig'"), std::string::npos);
}

TEST_F(RootFilesTest, AKubeconfigOfAnotherStartIsRefused) {  // 2.16
  const auto blue = Start(At("blue"));
  ASSERT_TRUE(blue.ok());
  ASSERT_TRUE(Start(At("other")).ok());
  Copy(Path("other", "admin.kubeconfig"), Path("blue", "admin.kubeconfig"));
  const auto again = Start(At("blue"));
  ASSERT_EQ(again.code(), Code::kPrecondition);
  EXPECT_NE(again.status().message().find("is not valid anymore"), std::string::npos);
  EXPECT_EQ(again.status().message().find(blue->shard_admin_token), std::string::npos) << "no token in a message";
}

TEST_F(RootFilesTest, WithoutTheTokenStoreANewShardAdminTokenIsMade) {  // 2.16
  const auto first = Start(At("blue"));
  ASSERT_TRUE(RemoveFile(Path("blue", ".admin-token-store")).ok());
  const auto second = Start(At("blue"));
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->shard_admin_token, second->shard_admin_token);
}

TEST_F(RootFilesTest, ADamagedKubeconfigIsRefusedAndKept) {
  ASSERT_TRUE(Start(At("blue")).ok());
  const std::string path = Path("blue", "admin.kubeconfig");
  ASSERT_TRUE(WriteFileAtomic(path, "users: [", 0600).ok());
  EXPECT_EQ(Start(At("blue")).code(), Code::kInvalid);
  EXPECT_EQ(*ReadFile(path), "users: [");
}

TEST_F(RootFilesTest, WithAShardUrlTheKubeconfigNamesTheFront) {  // 2.7
  Options options = At("blue");
  options.shard_base_url = "https://front.example:6443/";
  ASSERT_TRUE(Start(options, 41000).ok());
  const auto text = ReadFile(Path("blue", "admin.kubeconfig"));
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("https://front.example:6443/clusters/system:admin\""), std::string::npos);
  EXPECT_EQ(text->find("41000"), std::string::npos);
}

TEST_F(RootFilesTest, BuildsOfTwoVersionsDifferInTheirBytesAlone) {
  const std::string self = "/proc/self/exe";
  const std::string a = Path("a", "kcp"), b = Path("b", "kcp"), again = Path("c", "kcp");
  ASSERT_TRUE(WriteBuild(self, "v0.33.0", a).ok());
  ASSERT_TRUE(WriteBuild(self, "v0.33.1", b, "never-ready").ok());
  ASSERT_TRUE(WriteBuild(b, "v0.33.0", again).ok()) << "a build can be made from a build";
  EXPECT_EQ(*ReadBuildVersion(a), "v0.33.0");
  EXPECT_EQ(*ReadBuildVersion(b), "v0.33.1");
  EXPECT_EQ(BuildVersion(), "v0.0.0-dev");
  EXPECT_NE(*Sha256File(a), *Sha256File(b));
  EXPECT_EQ(*Sha256File(a), *Sha256File(again));
  EXPECT_EQ(access(a.c_str(), X_OK), 0);
}

TEST_F(RootFilesTest, ABuildIsRefusedForAWrongVersionAndAForeignFile) {
  const std::string out = Path("a", "kcp");
  for (const std::string& bad : {std::string(), std::string("v 1"), std::string("a/b"), std::string(64, 'v')}) {
    EXPECT_EQ(WriteBuild("/proc/self/exe", bad, out).code(), Code::kInvalid) << bad;
  }
  const Status unknown = WriteBuild("/proc/self/exe", "v1.0.0", out, "never-redy");
  EXPECT_EQ(unknown.code(), Code::kInvalid);
  EXPECT_NE(unknown.message().find("known are never-ready, ready-delay=TIME"), std::string::npos) << unknown.message();
  EXPECT_EQ(WriteBuild("/bin/true", "v1.0.0", out).code(), Code::kCorrupt);
  ASSERT_TRUE(MakeDirs(dir_).ok());
  ASSERT_TRUE(WriteFileAtomic(Path("", "text"), "no program", 0644).ok());
  EXPECT_EQ(WriteBuild(Path("", "text"), "v1.0.0", out).code(), Code::kCorrupt);
  EXPECT_FALSE(PathExists(out));
}

}  // namespace
}  // namespace lockkeeper::kcp
