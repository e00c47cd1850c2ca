// A folder of one test, removed with all below at its end.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <string>

#include "api/base/file.h"

namespace lockkeeper {

class TempDirTest : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/lk-host-XXXXXX";
    dir_ = mkdtemp(name);
  }
  void TearDown() override { EXPECT_TRUE(RemoveTree(dir_).ok()); }

  std::string Path(const std::string& below) const { return JoinPath(dir_, below); }
  std::string Write(const std::string& below, const std::string& content, mode_t mode = 0644) const {
    const std::string path = Path(below);
    EXPECT_TRUE(MakeDirs(DirName(path)).ok());
    EXPECT_TRUE(WriteFileAtomic(path, content, mode).ok());
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  static mode_t ModeOf(const std::string& path) {
    struct stat st = {};
    return lstat(path.c_str(), &st) == 0 ? st.st_mode & 07777 : 0;
  }

  std::string dir_;
};

}  // namespace lockkeeper
