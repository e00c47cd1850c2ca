#include <unistd.h>

#include "reconcilers/host/host_files.h"
#include "tests/integration/host/temp_dir.h"

namespace lockkeeper {
namespace {

class ReleaseSourceTest : public TempDirTest {
 protected:
  void SetUp() override {
    TempDirTest::SetUp();
    Write("builds/v1/bin/kcp", "version one", 0755);
    Write("builds/v1/share/doc", "text", 0644);
    template_ = Path("builds/{version}");
  }
  Result<ReleaseInfo> Fetch(const ReleaseInfo& info, const std::string& type = "None", const std::string& sum = "") {
    done_ = 0;
    return source_->Fetch(info, type, sum, Path("releases"), [this](int64_t done, int64_t total) {
      EXPECT_LE(done, total);
      EXPECT_GE(done, done_);
      done_ = done;
    });
  }
  ReleaseInfo MustResolve(const std::string& version) {
    const Result<ReleaseInfo> info = source_->Resolve(template_, version, "", "");
    EXPECT_TRUE(info.ok()) << info.status().ToString();
    return info.ok() ? *info : ReleaseInfo{};
  }
  void ExpectNothingInstalled() {
    const Result<std::vector<std::string>> names = ListDir(Path("releases"));
    EXPECT_TRUE(!names.ok() || names->empty()) << names->front();
  }

  std::string template_;
  int64_t done_ = 0;
  std::unique_ptr<ReleaseSource> source_ = NewReleaseSource();
};

TEST_F(ReleaseSourceTest, AFolderIsCopiedUnderItsHash) {
  const ReleaseInfo info = MustResolve("v1");
  EXPECT_EQ(info.size, 15);
  const Result<ReleaseInfo> fetched = Fetch(info);
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  EXPECT_EQ(fetched->path, Path("releases/" + info.sha256));
  EXPECT_EQ(*ReadFile(fetched->path + "/bin/kcp"), "version one");
  EXPECT_EQ(ModeOf(fetched->path + "/bin/kcp"), 0755u);
  EXPECT_EQ(ModeOf(fetched->path + "/share/doc"), 0644u);
  EXPECT_EQ(done_, 15);
  const std::vector<ReleaseFileInfo> files = *source_->Files(*fetched);
  ASSERT_EQ(files.size(), 2u);
  EXPECT_EQ(files[0].path, "bin/kcp");
  EXPECT_EQ(files[0].sha256, Sha256Hex("version one"));
  EXPECT_TRUE(files[0].executable);
  EXPECT_EQ(ListDir(Path("releases"))->size(), 1u);
}

TEST_F(ReleaseSourceTest, WhatIsThereAndWholeIsNotFetchedAgain) {
  const ReleaseInfo info = MustResolve("v1");
  ASSERT_TRUE(Fetch(info).ok());
  ASSERT_TRUE(RemoveTree(Path("builds")).ok());
  EXPECT_TRUE(Fetch(info).ok());
}

TEST_F(ReleaseSourceTest, AReleaseThatLostAFileIsFetchedAgain) {
  const ReleaseInfo info = MustResolve("v1");
  const std::string path = Fetch(info)->path;
  ASSERT_TRUE(RemoveFile(path + "/bin/kcp").ok());
  ASSERT_TRUE(Fetch(info).ok());
  EXPECT_TRUE(PathExists(path + "/bin/kcp"));
}

TEST_F(ReleaseSourceTest, AVersionThatIsNotThereIsNamedWithItsPath) {
  const Result<ReleaseInfo> info = source_->Resolve(template_, "v9", "", "");
  EXPECT_EQ(info.code(), Code::kNotFound);
  EXPECT_NE(info.status().message().find(Path("builds/v9")), std::string::npos);
}

TEST_F(ReleaseSourceTest, AVersionWithAPathInItAndARemoteSourceAreRefused) {
  EXPECT_EQ(source_->Resolve(template_, "../../etc", "", "").code(), Code::kInvalid);
  EXPECT_EQ(source_->Resolve("https://example.com/{version}", "v1", "", "").code(), Code::kUnsupported);
  EXPECT_EQ(source_->Resolve("builds/{version}", "v1", "", "").code(), Code::kInvalid);
}

TEST_F(ReleaseSourceTest, TheTemplateIsFilledIn) {
  ReleaseSourceOptions options;
  options.os = "linux";
  options.arch = "amd64";
  source_ = NewReleaseSource(options);
  Write("dist/v2/kcp_linux_amd64.base", "exec", 0755);
  const Result<ReleaseInfo> info =
      source_->Resolve("file://" + Path("dist/{version}/kcp_{os}_{arch}.{artifact}"), "v2", "", "base");
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(info->sha256, Sha256Hex("exec"));
  const Result<ReleaseInfo> fetched = Fetch(*info);
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  EXPECT_EQ(*ReadFile(fetched->path + "/bin/kcp_linux_amd64.base"), "exec");
  EXPECT_EQ(ModeOf(fetched->path + "/bin/kcp_linux_amd64.base"), 0755u);
}

TEST_F(ReleaseSourceTest, AnIndexResolvesAChannelOnce) {  // G9
  const std::string index =
      Write("index.json", R"({"channels": {"latest": "v1"}, "builds": {"v1": {"commit": "abc"}}})");
  const Result<ReleaseInfo> info = source_->Resolve(template_, "latest", index, "");
  ASSERT_TRUE(info.ok()) << info.status().ToString();
  EXPECT_EQ(info->version, "v1");
  EXPECT_EQ(info->commit, "abc");
  EXPECT_EQ(source_->Resolve(template_, "main", index, "").code(), Code::kNotFound);
  EXPECT_EQ(source_->Resolve(template_, "latest", "", "").code(), Code::kInvalid);
  EXPECT_EQ(source_->Resolve(template_, "v1", Path("gone.json"), "").code(), Code::kNotFound);
  EXPECT_EQ(source_->Resolve(template_, "v1", Write("bad.json", "{"), "").code(), Code::kInvalid);
}

TEST_F(ReleaseSourceTest, AnIndexThatNamesAnotherHashStopsTheFetch) {
  const std::string index =
      Write("index.json", R"({"channels": {"latest": "v1"}, "builds": {"v1": {"sha256": ")" + Sha256Hex("x") + "\"}}}");
  const Result<ReleaseInfo> info = source_->Resolve(template_, "latest", index, "");
  ASSERT_TRUE(info.ok());
  const Result<ReleaseInfo> fetched = Fetch(*info);
  EXPECT_EQ(fetched.code(), Code::kCorrupt);
  ExpectNothingInstalled();
}

TEST_F(ReleaseSourceTest, ABuildThatChangedAfterItWasResolvedIsRefused) {
  const ReleaseInfo info = MustResolve("v1");
  Write("builds/v1/bin/kcp", "version two", 0755);
  const Result<ReleaseInfo> fetched = Fetch(info);
  EXPECT_EQ(fetched.code(), Code::kCorrupt);
  EXPECT_NE(fetched.status().message().find("was changed or damaged"), std::string::npos);
  ExpectNothingInstalled();
}

TEST_F(ReleaseSourceTest, AChecksumFileIsObeyed) {
  const std::string file = Write("one", "exec", 0755);
  template_ = file;
  const ReleaseInfo info = MustResolve("v1");
  const Result<ReleaseInfo> none = Fetch(info, "File");
  EXPECT_EQ(none.code(), Code::kNotFound);
  EXPECT_NE(none.status().message().find(file + ".sha256"), std::string::npos);
  Write("one.sha256", Sha256Hex("other") + "  one\n");
  const Result<ReleaseInfo> wrong = Fetch(info, "File");
  EXPECT_EQ(wrong.code(), Code::kCorrupt);
  EXPECT_NE(wrong.status().message().find(Sha256Hex("other")), std::string::npos);
  ExpectNothingInstalled();
  Write("one.sha256", Sha256Hex("zzz") + "  two\n" + Sha256Hex("exec") + " *one\n");
  EXPECT_TRUE(Fetch(info, "File").ok());
}

TEST_F(ReleaseSourceTest, AChecksumFileElsewhereAndABareHashAndAValueAreTaken) {
  template_ = Write("one", "exec", 0755);
  const ReleaseInfo info = MustResolve("v1");
  const std::string sums = Write("sums/v1", Sha256Hex("exec"));
  EXPECT_TRUE(Fetch(info, "File", "file://" + Path("sums/{version}")).ok());
  ASSERT_TRUE(RemoveTree(Path("releases")).ok());
  EXPECT_EQ(Fetch(info, "Value", Sha256Hex("nope")).code(), Code::kCorrupt);
  EXPECT_TRUE(Fetch(info, "Value", Sha256Hex("exec")).ok());
}

TEST_F(ReleaseSourceTest, InAFolderEveryFileMustBeNamedByTheChecksumFile) {
  const ReleaseInfo info = MustResolve("v1");
  Write("builds/v1.sha256", Sha256Hex("version one") + "  ./bin/kcp\n");
  const Result<ReleaseInfo> partly = Fetch(info, "File");
  EXPECT_EQ(partly.code(), Code::kNotFound);
  EXPECT_NE(partly.status().message().find("share/doc"), std::string::npos);
  ExpectNothingInstalled();
  Write("builds/v1.sha256", Sha256Hex("version one") + "  ./bin/kcp\n" + Sha256Hex("text") + "  share/doc\n");
  EXPECT_TRUE(Fetch(info, "File").ok());
}

TEST_F(ReleaseSourceTest, LinksThatStayInsideAreKeptAndOthersRefused) {
  ASSERT_EQ(symlink("bin/kcp", Path("builds/v1/kcp").c_str()), 0);
  const Result<ReleaseInfo> fetched = Fetch(MustResolve("v1"));
  ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
  EXPECT_EQ(*ReadFile(fetched->path + "/kcp"), "version one");
  ASSERT_TRUE(RemoveTree(Path("releases")).ok());
  ASSERT_EQ(symlink("../../../outside", Path("builds/v1/out").c_str()), 0);
  EXPECT_EQ(Fetch(MustResolve("v1")).code(), Code::kInvalid);
  ExpectNothingInstalled();
}

TEST_F(ReleaseSourceTest, ADeviceIsRefusedAndAnEmptyFolderToo) {
  ASSERT_EQ(mkfifo(Path("builds/v1/fifo").c_str(), 0600), 0);
  EXPECT_EQ(source_->Resolve(template_, "v1", "", "").code(), Code::kInvalid);
  ASSERT_TRUE(MakeDirs(Path("builds/v3")).ok());
  EXPECT_EQ(source_->Resolve(template_, "v3", "", "").code(), Code::kNotFound);
}

TEST_F(ReleaseSourceTest, WhatACrashLeftBehindIsSwept) {
  Write("releases/.part-abc/tree/bin/kcp", "half");
  const std::string whole = Fetch(MustResolve("v1"))->path;
  ASSERT_TRUE(SweepReleases(Path("releases")).ok());
  EXPECT_FALSE(PathExists(Path("releases/.part-abc")));
  EXPECT_TRUE(PathExists(whole));
}

}  // namespace
}  // namespace lockkeeper
