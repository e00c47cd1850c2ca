#include "reconcilers/front/state_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>

#include "api/base/file.h"

namespace lockkeeper::front {
namespace {

class StateFileTest : public testing::Test {
 protected:
  StateFileTest() {
    std::string pattern = testing::TempDir() + "front-state-XXXXXX";
    dir_ = ::mkdtemp(pattern.data());
  }
  ~StateFileTest() override { (void)RemoveTree(dir_); }

  static TargetState State() {
    return {.target = FrontTarget{.slot = "blue",
                                  .incarnation = 1,
                                  .invocation = 2,
                                  .address = "127.0.0.1:4001",
                                  .boot_id = "boot-1",
                                  .revision = 7,
                                  .ledger_id = "ledger-1"},
            .generation = 5,
            .revisions = {{"ledger-1", 7}}};
  }

  std::string dir_;
  std::string trouble_;
};

TEST_F(StateFileTest, WhatWasSavedIsResumedOnTheSameBoot) {
  StateFile file(JoinPath(dir_, "deep/state"));
  ASSERT_TRUE(file.Save(State()).ok());
  EXPECT_EQ(file.Load("boot-1", &trouble_), State());
  EXPECT_EQ(trouble_, "");
  struct stat info {};
  ASSERT_EQ(::stat(file.path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(StateFileTest, WithoutAFileTheFrontHolds) {
  StateFile file(dir_);
  EXPECT_EQ(file.Load("boot-1", &trouble_), TargetState{});
  EXPECT_NE(trouble_.find(file.path()), std::string::npos);
}

TEST_F(StateFileTest, OnAnotherBootTheFrontHolds) {
  StateFile file(dir_);
  ASSERT_TRUE(file.Save(State()).ok());
  const TargetState state = file.Load("boot-2", &trouble_);
  EXPECT_FALSE(state.target.has_value());
  EXPECT_EQ(state.generation, 5);
  EXPECT_NE(trouble_.find("boot-1"), std::string::npos);
}

TEST_F(StateFileTest, ADamagedFileIsMovedAsideAndTheFrontHolds) {
  StateFile file(dir_);
  ASSERT_TRUE(file.Save(State()).ok());
  auto text = *ReadFile(file.path());
  text[text.find("4001")] = '9';
  ASSERT_TRUE(WriteFileAtomic(file.path(), text).ok());
  EXPECT_EQ(file.Load("boot-1", &trouble_), TargetState{});
  EXPECT_NE(trouble_.find("checksum"), std::string::npos) << trouble_;
  EXPECT_TRUE(PathExists(file.path() + ".corrupt"));
  EXPECT_FALSE(PathExists(file.path()));
  EXPECT_TRUE(file.Save(State()).ok());
  EXPECT_EQ(file.Load("boot-1", &trouble_), State());
}

TEST_F(StateFileTest, AFolderThatCannotBeWrittenIsAnErrorThatNamesIt) {
  ASSERT_TRUE(WriteFileAtomic(JoinPath(dir_, "file"), "x").ok());
  StateFile file(JoinPath(dir_, "file/state"));
  const Status s = file.Save(State());
  EXPECT_FALSE(s.ok());
  EXPECT_NE(s.message().find("file"), std::string::npos) << s.message();
}

}  // namespace
}  // namespace lockkeeper::front
