#include "reconcilers/host/identity.h"

#include "api/base/time.h"
#include "tests/integration/host/temp_dir.h"

namespace lockkeeper {
namespace {

class IdentityTest : public TempDirTest {};

TEST_F(IdentityTest, TheMachineIdIsHashedAndStable) {
  const std::string id = "0123456789abcdef0123456789abcdef";
  const std::string file = Write("machine-id", id + "\n");
  const Result<HostIdentity> identity = ReadHostIdentity(Path("data"), file);
  ASSERT_TRUE(identity.ok()) << identity.status().ToString();
  EXPECT_EQ(identity->machine_id.size(), 32u);
  EXPECT_NE(identity->machine_id, id) << "the id itself is not to leave the machine";
  EXPECT_EQ(ReadHostIdentity(Path("other"), file)->machine_id, identity->machine_id);
  EXPECT_EQ(identity->boot_id, BootId());
  EXPECT_FALSE(identity->hostname.empty());
  EXPECT_FALSE(PathExists(Path("data/machine-id")));
}

TEST_F(IdentityTest, AMachineWithoutAnIdKeepsOneInTheDataDirectory) {
  for (const std::string& content : {std::string(""), std::string("uninitialized\n")}) {
    const std::string file = Write("machine-id", content);
    const std::string first = ReadHostIdentity(Path("data"), file)->machine_id;
    EXPECT_EQ(first.size(), 32u);
    EXPECT_EQ(ReadHostIdentity(Path("data"), file)->machine_id, first);
    EXPECT_NE(ReadHostIdentity(Path("elsewhere" + content.substr(0, 1)), file)->machine_id, first);
  }
}

}  // namespace
}  // namespace lockkeeper
