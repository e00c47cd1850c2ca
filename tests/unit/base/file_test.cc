#include "api/base/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace lockkeeper {
namespace {

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string form = testing::TempDir() + "lk-file-XXXXXX";
    ASSERT_NE(::mkdtemp(form.data()), nullptr);
    dir_ = form;
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string In(std::string_view name) const { return JoinPath(dir_, name); }
  static mode_t ModeOf(const std::string& path) {
    struct stat st {};
    EXPECT_EQ(::stat(path.c_str(), &st), 0);
    return st.st_mode & 07777;
  }

  std::string dir_;
};

TEST_F(FileTest, ReadsBackWhatWasWrittenWithTheModeAskedFor) {
  const std::string content("text with \0 inside\n", 19);
  ASSERT_TRUE(WriteFileAtomic(In("a"), content, 0600).ok());
  EXPECT_EQ(*ReadFile(In("a")), content);
  EXPECT_EQ(ModeOf(In("a")), 0600u);
  const std::string large(1 << 20, 'x');
  ASSERT_TRUE(WriteFileAtomic(In("a"), large, 0644).ok());
  EXPECT_EQ(*ReadFile(In("a")), large);
  EXPECT_EQ(ModeOf(In("a")), 0644u);
}

TEST_F(FileTest, AWriteLeavesNothingElseBehind) {
  ASSERT_TRUE(WriteFileAtomic(In("a"), "1").ok());
  ASSERT_TRUE(WriteFileAtomic(In("a"), "2").ok());
  EXPECT_EQ(*ListDir(dir_), std::vector<std::string>{"a"});
}

TEST_F(FileTest, AWriteThatFailsLeavesTheOldFileAndNoTemporaryOne) {
  ASSERT_TRUE(MakeDirs(In("folder/child")).ok());
  const Status status = WriteFileAtomic(In("folder"), "text");  // a folder cannot be replaced by a file
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(In("folder")), std::string::npos) << status.ToString();
  EXPECT_EQ(*ListDir(dir_), std::vector<std::string>{"folder"});
  EXPECT_TRUE(PathExists(In("folder/child")));
}

TEST_F(FileTest, AReaderOfTheOldFileKeepsItWhole) {
  ASSERT_TRUE(WriteFileAtomic(In("a"), "old").ok());
  const int fd = ::open(In("a").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  ASSERT_TRUE(WriteFileAtomic(In("a"), "new").ok());
  char buffer[8] = {};
  EXPECT_EQ(::read(fd, buffer, sizeof buffer), 3);
  EXPECT_STREQ(buffer, "old");
  ::close(fd);
}

TEST_F(FileTest, AWriteReplacesALinkInsteadOfFollowingIt) {
  ASSERT_TRUE(WriteFileAtomic(In("target"), "untouched").ok());
  ASSERT_EQ(::symlink("target", In("link").c_str()), 0);
  ASSERT_TRUE(WriteFileAtomic(In("link"), "new").ok());
  EXPECT_EQ(*ReadFile(In("target")), "untouched");
  EXPECT_EQ(*ReadFile(In("link")), "new");
}

TEST_F(FileTest, AnErrorNamesTheCallThePathAndTheReason) {
  const Status status = ReadFile(In("absent")).status();
  EXPECT_EQ(status, Status(Code::kNotFound, "open " + In("absent") + ": No such file or directory"));
  EXPECT_EQ(ReadFile(dir_).status().code(), Code::kInvalid) << "a folder is no file";
  EXPECT_EQ(WriteFileAtomic(In("absent/a"), "x").code(), Code::kNotFound);
}

TEST_F(FileTest, ErrnosHaveTheirKinds) {
  EXPECT_EQ(ErrnoStatus("write", "f", ENOSPC), Status(Code::kExhausted, "write f: No space left on device"));
  EXPECT_EQ(ErrnoStatus("write", "f", EDQUOT).code(), Code::kExhausted);
  EXPECT_EQ(ErrnoStatus("open", "f", ENOENT).code(), Code::kNotFound);
  EXPECT_EQ(ErrnoStatus("open", "f", EACCES).code(), Code::kForbidden);
  EXPECT_EQ(ErrnoStatus("open", "f", EPERM).code(), Code::kForbidden);
  EXPECT_EQ(ErrnoStatus("connect", "f", ECONNREFUSED).code(), Code::kUnavailable);
}

TEST_F(FileTest, AFullDiskIsExhausted) {
  if (!PathExists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  const int fd = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(fd, 0);
  EXPECT_EQ(::write(fd, "x", 1), -1);
  EXPECT_EQ(ErrnoStatus("write", "/dev/full", errno).code(), Code::kExhausted);
  ::close(fd);
}

TEST_F(FileTest, FoldersAreMadeWithTheirParentsAndMakingThemAgainIsFine) {
  EXPECT_TRUE(MakeDirs(In("a/b/c"), 0700).ok());
  EXPECT_TRUE(MakeDirs(In("a/b/c")).ok());
  EXPECT_TRUE(MakeDirs(In("a//b/c/")).ok());
  EXPECT_EQ(ModeOf(In("a/b/c")), 0700u);
  ASSERT_TRUE(WriteFileAtomic(In("a/file"), "x").ok());
  EXPECT_FALSE(MakeDirs(In("a/file")).ok());
  EXPECT_FALSE(MakeDirs(In("a/file/b")).ok());
  EXPECT_EQ(MakeDirs("").code(), Code::kInvalid);
}

TEST_F(FileTest, RemovingATreeNeverFollowsALink) {
  ASSERT_TRUE(MakeDirs(In("kept")).ok());
  ASSERT_TRUE(WriteFileAtomic(In("kept/file"), "x").ok());
  ASSERT_TRUE(MakeDirs(In("tree/sub")).ok());
  ASSERT_TRUE(WriteFileAtomic(In("tree/sub/file"), "x").ok());
  ASSERT_EQ(::symlink(In("kept").c_str(), In("tree/sub/link").c_str()), 0);
  ASSERT_EQ(::symlink(In("kept").c_str(), In("top-link").c_str()), 0);
  EXPECT_TRUE(RemoveTree(In("tree/")).ok());
  EXPECT_TRUE(RemoveTree(In("top-link")).ok());
  EXPECT_EQ(*ListDir(dir_), std::vector<std::string>{"kept"});
  EXPECT_TRUE(PathExists(In("kept/file")));
}

TEST_F(FileTest, RemovingWhatIsAbsentIsFine) {
  EXPECT_TRUE(RemoveFile(In("absent")).ok());
  EXPECT_TRUE(RemoveTree(In("absent")).ok());
  ASSERT_TRUE(WriteFileAtomic(In("file"), "x").ok());
  EXPECT_TRUE(RemoveTree(In("file")).ok());
  EXPECT_FALSE(PathExists(In("file")));
}

TEST_F(FileTest, ListsNamesSorted) {
  for (const char* name : {"b", "a", ".hidden"}) ASSERT_TRUE(WriteFileAtomic(In(name), "").ok());
  EXPECT_EQ(*ListDir(dir_), (std::vector<std::string>{".hidden", "a", "b"}));
  EXPECT_EQ(ListDir(In("absent")).code(), Code::kNotFound);
}

TEST(Paths, JoinAndDirNameTakeSlashesAsTheyCome) {
  EXPECT_EQ(JoinPath("/a", "b"), "/a/b");
  EXPECT_EQ(JoinPath("/a/", "/b"), "/a/b");
  EXPECT_EQ(JoinPath("", "b"), "b");
  EXPECT_EQ(JoinPath("/", "b"), "/b");
  EXPECT_EQ(JoinPath("a", ""), "a");
  EXPECT_EQ(DirName("/a/b"), "/a");
  EXPECT_EQ(DirName("/a//b//"), "/a");
  EXPECT_EQ(DirName("/a"), "/");
  EXPECT_EQ(DirName("a"), ".");
  EXPECT_EQ(DirName("/"), "/");
  EXPECT_EQ(DirName(""), ".");
}

TEST_F(FileTest, Sha256IsThatOfTheStandardsExamples) {
  EXPECT_EQ(Sha256Hex(""), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(Sha256Hex("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string million(1000000, 'a');
  ASSERT_TRUE(WriteFileAtomic(In("a"), million).ok());
  EXPECT_EQ(*Sha256File(In("a")), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  EXPECT_EQ(Sha256File(In("absent")).code(), Code::kNotFound);
}

}  // namespace
}  // namespace lockkeeper
