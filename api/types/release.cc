#include "api/types/release.h"

#include "api/types/field_limits.h"

namespace lockkeeper {

using namespace types_internal;  // NOLINT(google-build-using-namespace)

const EnumInfo& EnumInfoOf(VerifiedBy) {
  static const EnumInfo info{"VerifiedBy", {"Nothing", "ChecksumFile", "ChecksumValue", "Signature"}};
  return info;
}

const TypeInfo& ReleaseSpec::Type() {
  static const TypeInfo* type = [] {
    using S = ReleaseSpec;
    TypeBuilder<S> b("ReleaseSpec", "The build to have on the host. Immutable.");
    b.Field(&S::server_ref, "serverRef", "The Server whose source is used.");
    b.Field(&S::source, "source", "Where the build comes from.");
    Name(b.Field(&S::host, "host", "The host to have it on.")).Required();
    Version(b.Field(&S::version, "version", "A tag, latest or main.")).Required();
    b.Field(&S::artifact, "artifact", "Which artifact of the source's index.")
        .Length(1, 64)
        .Pattern(kVersionPattern, kVersionHint);
    b.ImmutableBut({}, "a Release is one build; make another one under a new name");
    b.Check("has(self.serverRef) != has(self.source)", "set exactly one of serverRef and source",
            [](const Json& self, const Json*) { return self.Has("serverRef") != self.Has("source"); });
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ReleaseFile::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<ReleaseFile> b("ReleaseFile", "One file of the release.");
    b.Field(&ReleaseFile::path, "path", "Path within the release.").Required().Length(1, kPathLength);
    b.Field(&ReleaseFile::sha256, "sha256", "SHA-256 of the file.").Length(0, 64);
    Count(b.Field(&ReleaseFile::size, "size", "Bytes."));
    return b.Build();
  }();
  return *type;
}

const TypeInfo& ReleaseStatus::Type() {
  static const TypeInfo* type = [] {
    using S = ReleaseStatus;
    TypeBuilder<S> b("ReleaseStatus", "The build on the host; written by the agent.");
    ObservedGeneration(b);
    b.Field(&S::resolved, "resolved", "The build that the version stands for.");
    b.Field(&S::sha256, "sha256", "SHA-256 of the main executable.").Length(0, 64);
    Count(b.Field(&S::size, "size", "Bytes on the host."));
    b.Field(&S::path, "path", "The folder it was unpacked to.").Length(0, kPathLength);
    b.Field(&S::executable, "executable", "The main executable, within path.").Length(0, kPathLength);
    b.Field(&S::progress, "progress", "The numbers of what it is doing.");
    b.Field(&S::files, "files", "Its files, the first 256 by name.").Items(0, 256);
    b.Field(&S::verified_by, "verifiedBy", "What vouched for it.");
    Conditions(b);
    NextActions(b);
    return b.Build();
  }();
  return *type;
}

const TypeInfo& Release::Type() {
  static const TypeInfo* type = [] {
    TypeBuilder<Release> b("Release", "One build wanted on one host: resolved, fetched, verified, unpacked.");
    KindFields(b, "The build to have on the host. Immutable.", "The build on the host.");
    return b.Build();
  }();
  return *type;
}

}  // namespace lockkeeper
