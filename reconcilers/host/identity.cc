#include "reconcilers/host/identity.h"

#include <unistd.h>

#include <array>
#include <cerrno>

#include "api/base/file.h"
#include "api/base/id.h"
#include "api/base/time.h"

namespace lockkeeper {
namespace {

std::string FirstLine(const std::string& text) { return text.substr(0, text.find('\n')); }

}  // namespace

Result<HostIdentity> ReadHostIdentity(const std::string& data_dir, const std::string& machine_id_file) {
  HostIdentity identity;
  identity.boot_id = BootId();
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return ErrnoStatus("ask for", "the host's name", errno);
  identity.hostname = name.data();
  const std::string machine = FirstLine(ReadFile(machine_id_file).value_or(""));
  // While an image waits for its first boot the file says "uninitialized".
  if (machine.size() == 32) {
    identity.machine_id = Sha256Hex("lockkeeper host " + machine).substr(0, 32);
    return identity;
  }
  const std::string own = JoinPath(data_dir, "machine-id");
  const Result<std::string> kept = ReadFile(own);
  if (kept.ok() && FirstLine(*kept).size() == 32) {
    identity.machine_id = FirstLine(*kept);
    return identity;
  }
  if (!kept.ok() && kept.code() != Code::kNotFound) return kept.status();
  LK_RETURN_IF_ERROR(MakeDirs(data_dir, 0700));
  identity.machine_id = RandomHex(16);
  LK_RETURN_IF_ERROR(WriteFileAtomic(own, identity.machine_id + "\n"));
  return identity;
}

}  // namespace lockkeeper
