// Archives, well-made and hostile.

#include <archive.h>
#include <archive_entry.h>
#include <unistd.h>

#include "reconcilers/host/host_files.h"
#include "tests/integration/host/temp_dir.h"

namespace lockkeeper {
namespace {

struct Entry {
  std::string name;
  std::string content;
  int type = AE_IFREG;
  std::string link = {};
  int mode = 0644;
};

class ReleaseArchiveTest : public TempDirTest {
 protected:
  std::string Pack(const std::string& name, const std::vector<Entry>& entries) {
    const std::string path = Path(name);
    archive* a = archive_write_new();
    archive_write_set_format_pax_restricted(a);
    if (name.ends_with(".gz")) archive_write_add_filter_gzip(a);
    if (name.ends_with(".zst")) archive_write_add_filter_zstd(a);
    EXPECT_EQ(archive_write_open_filename(a, path.c_str()), ARCHIVE_OK);
    for (const Entry& e : entries) {
      archive_entry* entry = archive_entry_new();
      archive_entry_set_pathname(entry, e.name.c_str());
      archive_entry_set_filetype(entry, static_cast<unsigned>(e.type));
      archive_entry_set_perm(entry, static_cast<mode_t>(e.mode));
      if (e.type == AE_IFLNK) {
        archive_entry_set_symlink(entry, e.link.c_str());
      } else if (!e.link.empty()) {
        archive_entry_set_hardlink(entry, e.link.c_str());
      } else {
        archive_entry_set_size(entry, static_cast<int64_t>(e.content.size()));
      }
      EXPECT_EQ(archive_write_header(a, entry), ARCHIVE_OK) << e.name;
      if (e.type == AE_IFREG && e.link.empty()) archive_write_data(a, e.content.data(), e.content.size());
      archive_entry_free(entry);
    }
    archive_write_close(a);
    archive_write_free(a);
    return path;
  }
  Result<ReleaseInfo> Fetch(const std::string& path) {
    const Result<ReleaseInfo> info = source_->Resolve(path, "v1", "", "");
    if (!info.ok()) return info.status();
    return source_->Fetch(*info, "None", "", Path("releases"), nullptr);
  }
  // Refused, and nothing is left inside or outside.
  void ExpectRefused(const std::vector<Entry>& entries, const std::string& why) {
    const Result<ReleaseInfo> fetched = Fetch(Pack("bad.tar.gz", entries));
    EXPECT_EQ(fetched.code(), Code::kInvalid) << fetched.status().ToString();
    EXPECT_NE(fetched.status().message().find(why), std::string::npos) << fetched.status().message();
    EXPECT_TRUE(ListDir(Path("releases"))->empty());
    EXPECT_FALSE(PathExists(Path("outside")));
    EXPECT_FALSE(PathExists("/tmp/lk-archive-escape"));
  }
  std::unique_ptr<ReleaseSource> source_ = NewReleaseSource();
};

TEST_F(ReleaseArchiveTest, GzipZstdAndPlainTarAreUnpacked) {
  for (const char* name : {"r.tar.gz", "r.tar.zst", "r.tar"}) {
    const std::string path = Pack(name, {{"./bin/", "", AE_IFDIR, "", 0755},
                                         {"./bin/kcp", name, AE_IFREG, "", 04755},
                                         {"bin/link", "", AE_IFLNK, "kcp"},
                                         {"bin/hard", "", AE_IFREG, "bin/kcp"},
                                         {"doc", "text", AE_IFREG, "", 0666}});
    const Result<ReleaseInfo> fetched = Fetch(path);
    ASSERT_TRUE(fetched.ok()) << fetched.status().ToString();
    EXPECT_EQ(*ReadFile(fetched->path + "/bin/kcp"), name);
    EXPECT_EQ(ModeOf(fetched->path + "/bin/kcp"), 0755u) << "no set-user bit survives";
    EXPECT_EQ(ModeOf(fetched->path + "/doc"), 0644u);
    EXPECT_EQ(*ReadFile(fetched->path + "/bin/link"), name);
    EXPECT_EQ(*ReadFile(fetched->path + "/bin/hard"), name);
    EXPECT_EQ(fetched->sha256, *Sha256File(path));
  }
}

TEST_F(ReleaseArchiveTest, APathThatLeadsOutIsRefused) {
  ExpectRefused({{"ok", "x"}, {"../../outside", "x"}}, "leads out");
  ExpectRefused({{"a/../../../outside", "x"}}, "leads out");
  ExpectRefused({{"/tmp/lk-archive-escape", "x"}}, "leads out");
}

TEST_F(ReleaseArchiveTest, ALinkThatLeadsOutIsRefusedAndNothingIsWrittenThroughIt) {
  ExpectRefused({{"l", "", AE_IFLNK, "/etc"}, {"l/x", "x"}}, "absolute link");
  ExpectRefused({{"l", "", AE_IFLNK, "../.."}, {"ok", "x"}}, "leads out");
  // Lexically inside, really outside.
  ExpectRefused({{"d", "", AE_IFLNK, "."}, {"e", "", AE_IFLNK, "d/../.."}, {"ok", "x"}}, "leads out");
  ExpectRefused({{"ok", "x"}, {"l", "", AE_IFLNK, "nowhere"}}, "nowhere");
  ExpectRefused({{"ok", "x"}, {"h", "", AE_IFREG, "../../../../etc/passwd"}}, "leads out");
  ExpectRefused({{"ok", "x"}, {"h", "", AE_IFREG, "gone"}}, "to nothing");
}

TEST_F(ReleaseArchiveTest, AFileBelowALinkIsRefusedWhenTheLinkCannotBeMade) {
  const Result<ReleaseInfo> fetched = Fetch(Pack("x.tar", {{"l", "", AE_IFLNK, "d"}, {"l/x", "x"}, {"d/y", "y"}}));
  EXPECT_FALSE(fetched.ok());
  EXPECT_TRUE(ListDir(Path("releases"))->empty());
}

TEST_F(ReleaseArchiveTest, DevicesAreRefused) {
  ExpectRefused({{"ok", "x"}, {"fifo", "", AE_IFIFO}}, "neither file, folder nor link");
  ExpectRefused({{"ok", "x"}, {"dev", "", AE_IFCHR}}, "neither file, folder nor link");
}

TEST_F(ReleaseArchiveTest, ASmallArchiveOfAHugeReleaseIsRefused) {
  ReleaseSourceOptions options;
  options.max_bytes = 1 << 20;
  options.max_entries = 100;
  source_ = NewReleaseSource(options);
  ExpectRefused({{"zeros", std::string(2 << 20, '\0')}}, "larger than 1048576 bytes");
  std::vector<Entry> many;
  for (int i = 0; i < 120; ++i) many.push_back({"f" + std::to_string(i), ""});
  ExpectRefused(many, "more than 100");
}

TEST_F(ReleaseArchiveTest, AnArchiveThatIsCutShortOrNoArchiveIsDamaged) {
  const std::string path = Pack("r.tar.gz", {{"bin/kcp", std::string(100000, 'k')}});
  std::string bytes = *ReadFile(path);
  ASSERT_TRUE(WriteFileAtomic(path, bytes.substr(0, bytes.size() / 2)).ok());
  EXPECT_EQ(Fetch(path).code(), Code::kCorrupt);
  ASSERT_TRUE(WriteFileAtomic(path, "no archive at all").ok());
  const Result<ReleaseInfo> fetched = Fetch(path);
  EXPECT_EQ(fetched.code(), Code::kCorrupt);
  EXPECT_TRUE(ListDir(Path("releases"))->empty());
}

}  // namespace
}  // namespace lockkeeper
