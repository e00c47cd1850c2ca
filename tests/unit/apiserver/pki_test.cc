#include "api/server/pki.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>

#include "tests/unit/apiserver/temp_dir.h"

namespace lockkeeper::apiserver {
namespace {

const Time kNow = *ParseTime("2026-11-30T12:00:00Z");
constexpr Duration kDay = Seconds(86400);

TEST(Pki, AFirstStartMakesACaForTenYearsAndACertificateWithAllNames) {
  TempDir dir;
  const Result<ServingPki> pki = EnsureServingPki(dir / "pki", ServingNames("192.0.2.7"), kNow);
  ASSERT_TRUE(pki.ok()) << pki.status().ToString();
  EXPECT_TRUE(pki->made_ca);
  const Result<CertificateInfo> ca = InspectCertificate(pki->ca_pem);
  EXPECT_TRUE(ca->is_ca);
  EXPECT_GE(ca->not_after - kNow, 3649 * kDay);
  const Result<CertificateInfo> serving = InspectCertificate(pki->serving.certificate_pem);
  for (const char* name : {"localhost", "127.0.0.1", "::1", "192.0.2.7"}) {
    EXPECT_NE(std::find(serving->names.begin(), serving->names.end(), name), serving->names.end()) << name;
  }
  EXPECT_FALSE(serving->is_ca);
  EXPECT_TRUE(CheckPair(pki->serving, pki->ca_pem).ok());
  for (const char* key : {"pki/ca.key", "pki/server.key"}) {
    struct stat file {};
    ASSERT_EQ(::stat((dir / key).c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 0777, 0600U) << key;
  }
}

TEST(Pki, ALaterStartKeepsThemAndTheLastThirdOfAYearMakesANewOneOfTheSameCa) {
  TempDir dir;
  const std::vector<std::string> names = ServingNames("127.0.0.1");
  const Result<ServingPki> first = EnsureServingPki(dir / "pki", names, kNow);
  const Result<ServingPki> second = EnsureServingPki(dir / "pki", names, kNow + 200 * kDay);
  EXPECT_EQ(first->serving.certificate_pem, second->serving.certificate_pem);
  const Result<ServingPki> third = EnsureServingPki(dir / "pki", names, kNow + 250 * kDay);
  EXPECT_NE(first->serving.certificate_pem, third->serving.certificate_pem);
  EXPECT_EQ(first->ca_pem, third->ca_pem);
  const Result<ServingPki> wider = EnsureServingPki(dir / "pki", ServingNames("192.0.2.7"), kNow + 251 * kDay);
  EXPECT_NE(third->serving.certificate_pem, wider->serving.certificate_pem) << "a new name needs a new certificate";
}

TEST(Pki, AForeignKeyIsNamedAndNothingIsOverwritten) {
  TempDir dir;
  ASSERT_TRUE(EnsureServingPki(dir / "pki", {"localhost"}, kNow).ok());
  const Result<CertificatePair> other = MakeCa("other", kNow, 10 * kDay);
  ASSERT_TRUE(WriteFileAtomic(dir / "pki/ca.key", other->private_key_pem, 0600).ok());
  const Result<ServingPki> refused = EnsureServingPki(dir / "pki", {"localhost"}, kNow);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find(dir / "pki"), std::string::npos);
  EXPECT_EQ(*ReadFile(dir / "pki/ca.key"), other->private_key_pem);
}

TEST(Pki, ACrashBetweenKeyAndCertificateIsMended) {
  TempDir dir;
  ASSERT_TRUE(EnsureServingPki(dir / "pki", {"localhost"}, kNow).ok());
  ASSERT_TRUE(RemoveFile(dir / "pki/ca.crt").ok());
  const Result<ServingPki> again = EnsureServingPki(dir / "pki", {"localhost"}, kNow);
  ASSERT_TRUE(again.ok()) << again.status().ToString();
  EXPECT_TRUE(CheckPair(again->serving, again->ca_pem).ok()) << "the old serving certificate went with its CA";
}

TEST(Pki, ASelfSignedOneIsItsOwnRoot) {
  const Result<CertificatePair> pair = MakeServingCertificate(nullptr, "kcp", {"127.0.0.1"}, kNow, 365 * kDay);
  ASSERT_TRUE(pair.ok());
  EXPECT_TRUE(CheckPair(*pair, pair->certificate_pem).ok());
}

}  // namespace
}  // namespace lockkeeper::apiserver
