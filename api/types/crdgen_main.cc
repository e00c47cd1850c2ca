// crdgen: writes crd/ and docs/reference/ below a folder, or checks that they are current.
//
//   crdgen DIR           writes what differs
//   crdgen --check DIR   exits 1 with the names of files that differ, are missing or are stale
#include <cstdio>
#include <string>

#include "api/base/file.h"
#include "api/types/generate.h"

namespace {

int Check(const std::string& root) {
  const std::vector<std::string> stale = lockkeeper::StaleFiles(root);
  for (const std::string& path : stale) std::printf("%s\n", path.c_str());
  if (!stale.empty())
    std::fprintf(stderr, "crdgen: %zu generated files are not current: run make generate\n", stale.size());
  return stale.empty() ? 0 : 1;
}

int Write(const std::string& root) {
  const std::vector<std::string> stale = lockkeeper::StaleFiles(root);
  for (const lockkeeper::GeneratedFolder& folder : lockkeeper::GeneratedFolders()) {
    const lockkeeper::Status made = lockkeeper::MakeDirs(lockkeeper::JoinPath(root, folder.path));
    if (!made.ok()) {
      std::fprintf(stderr, "crdgen: %s\n", made.ToString().c_str());
      return 1;
    }
  }
  const std::vector<lockkeeper::GeneratedFile> files = lockkeeper::GeneratedFiles();
  for (const std::string& path : stale) {
    lockkeeper::Status done = lockkeeper::Status::Ok();
    bool generated = false;
    for (const lockkeeper::GeneratedFile& file : files) {
      if (file.path != path) continue;
      generated = true;
      done = lockkeeper::WriteFileAtomic(lockkeeper::JoinPath(root, path), file.content);
    }
    if (!generated) done = lockkeeper::RemoveFile(lockkeeper::JoinPath(root, path));
    if (!done.ok()) {
      std::fprintf(stderr, "crdgen: %s\n", done.ToString().c_str());
      return 1;
    }
    std::printf("%s %s\n", generated ? "wrote" : "removed", path.c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string first = argc > 1 ? argv[1] : "";
  if (argc == 3 && first == "--check") return Check(argv[2]);
  if (argc == 2 && !first.starts_with("-")) return Write(first);
  std::fprintf(stderr, "usage: crdgen [--check] DIR\n");
  return 2;
}
