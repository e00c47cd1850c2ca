// Generated files: crd/*.yaml and docs/reference/*.md, from the kind registry.
//
// Purpose:   `crdgen` writes them, a test and `crdgen --check` compare them.
// Ownership: values. Threads: thread-safe. Failure: none here.
#pragma once

#include <string>
#include <vector>

namespace lockkeeper {

struct GeneratedFile {
  std::string path;  // from the root of the tree
  std::string content;
};

std::vector<GeneratedFile> GeneratedFiles();

// The folders whose files of the given ending are all generated; others in them are stale.
struct GeneratedFolder {
  std::string path;
  std::string ending;
};
std::vector<GeneratedFolder> GeneratedFolders();

// Paths below `root` that differ from what would be generated, are missing, or are stale; sorted.
std::vector<std::string> StaleFiles(const std::string& root);

}  // namespace lockkeeper
