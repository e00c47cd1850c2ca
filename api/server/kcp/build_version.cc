#include "api/server/kcp/build_version.h"

#include <elf.h>

#include <cstring>
#include <optional>
#include <string_view>

#include "api/base/file.h"
#include "api/server/kcp/faults.h"

namespace lockkeeper::kcp {
namespace {

constexpr char kSectionName[] = "lk_version";
constexpr std::string_view kMarker = "lockkeeper-build";

struct VersionSection {
  char marker[16];
  char version[64];
  char faults[128];
};
static_assert(sizeof(VersionSection) == 208);

// Volatile: the compiler must read what the file says, not what stands here.
__attribute__((section("lk_version"), used, retain)) volatile VersionSection g_section = {
    {'l', 'o', 'c', 'k', 'k', 'e', 'e', 'p', 'e', 'r', '-', 'b', 'u', 'i', 'l', 'd'}, "v0.0.0-dev", ""};

template <size_t N>
std::string ReadField(const volatile char (&field)[N]) {
  std::string text;
  for (size_t i = 0; i < N && field[i] != '\0'; ++i) text.push_back(field[i]);
  return text;
}

template <typename T>
std::optional<T> ReadAt(std::string_view data, uint64_t offset) {
  if (offset > data.size() || data.size() - offset < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, data.data() + offset, sizeof(T));
  return value;
}

// Offset of the section in an ELF file of this machine's word size.
Result<uint64_t> FindSection(std::string_view file, const std::string& path) {
  const Status bad(Code::kCorrupt, "reading " + path + ": no " + kSectionName + " section of this product");
  const auto header = ReadAt<Elf64_Ehdr>(file, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return bad;
  const auto section = [&](uint64_t i) { return ReadAt<Elf64_Shdr>(file, header->e_shoff + i * header->e_shentsize); };
  const auto names = section(header->e_shstrndx);
  if (!names) return bad;
  for (uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto s = section(i);
    if (!s) return bad;
    const uint64_t name = names->sh_offset + s->sh_name;
    if (name > file.size() ||
        file.substr(name, sizeof(kSectionName)) != std::string_view(kSectionName, sizeof(kSectionName)))
      continue;
    const auto content = ReadAt<VersionSection>(file, s->sh_offset);
    if (!content || std::string_view(content->marker, sizeof(content->marker)) != kMarker) return bad;
    return s->sh_offset;
  }
  return bad;
}

bool IsVersionText(std::string_view text) {
  if (text.empty()) return false;
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::string_view("._+-").find(c) == std::string_view::npos)
      return false;
  }
  return true;
}

}  // namespace

std::string BuildVersion() { return ReadField(g_section.version); }
std::string BuildFaults() { return ReadField(g_section.faults); }

Result<std::string> ReadBuildVersion(const std::string& path) {
  LK_ASSIGN_OR_RETURN(const std::string file, ReadFile(path));
  LK_ASSIGN_OR_RETURN(const uint64_t offset, FindSection(file, path));
  const auto content = ReadAt<VersionSection>(file, offset);
  return std::string(content->version, strnlen(content->version, sizeof(content->version)));
}

Status WriteBuild(const std::string& self_exe, const std::string& version, const std::string& out_path,
                  const std::string& faults) {
  if (!IsVersionText(version) || version.size() >= sizeof(VersionSection::version)) {
    return Status(Code::kInvalid, "writing a build: version \"" + version + "\" must be 1 to 63 of A-Za-z0-9._+-");
  }
  if (faults.size() >= sizeof(VersionSection::faults)) {
    return Status(Code::kInvalid, "writing a build: faults are longer than 127 characters");
  }
  // Else the build would fail only where it is started, with its error in the slot's log.
  LK_RETURN_IF_ERROR(ParseFaults(faults).status().Annotate("writing a build"));
  LK_ASSIGN_OR_RETURN(std::string file, ReadFile(self_exe));
  LK_ASSIGN_OR_RETURN(const uint64_t offset, FindSection(file, self_exe));
  VersionSection section = {};
  std::memcpy(section.marker, kMarker.data(), kMarker.size());
  std::memcpy(section.version, version.data(), version.size());
  std::memcpy(section.faults, faults.data(), faults.size());
  std::memcpy(file.data() + offset, &section, sizeof(section));
  LK_RETURN_IF_ERROR(MakeDirs(DirName(out_path)));
  return WriteFileAtomic(out_path, file, 0755);
}

}  // namespace lockkeeper::kcp
