#include "services/common/security/certificate_authority.h"

#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include <set>

#include "services/common/security/certificate.h"
#include "tests/unit/services/common/security/identities.h"
#include "tests/unit/services/common/security/intermediate.h"

namespace adamant::security {
namespace {

using std::chrono::hours;
using std::chrono::minutes;

const WallTime kNow = std::chrono::system_clock::from_time_t(1'800'000'000);
constexpr hours kRootLife(24 * 365);
constexpr hours kLife(24);

CertificateAuthority MakeAuthority() { return CertificateAuthority::Make(kNow, kRootLife).value(); }

std::string NewRequest() { return PrivateKey::Make().value().MakeRequest().value(); }

std::string SignWorker(const CertificateAuthority& authority, WallTime now = kNow) {
  return authority.Sign(NewRequest(), kWorker, now, kLife).value();
}

bool IsTrusted(const std::string& chain, const std::string& roots, WallTime now = kNow) {
  return VerifyCertificate(chain, roots, now).ok();
}

TEST(CertificateAuthorityTest, SignsWhatItsRootsLeadTo) {
  const CertificateAuthority authority = MakeAuthority();
  const auto content = VerifyCertificate(SignWorker(authority), authority.roots(), kNow);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->identity, kWorker);
  EXPECT_EQ(content->not_before, kNow - minutes(5));
  EXPECT_EQ(content->not_after, kNow + kLife);
}

TEST(CertificateAuthorityTest, CertificatesCountFromTheirBeginningToTheirEnd) {
  const CertificateAuthority authority = MakeAuthority();
  const std::string chain = SignWorker(authority);
  EXPECT_FALSE(IsTrusted(chain, authority.roots(), kNow - minutes(6)));
  EXPECT_TRUE(IsTrusted(chain, authority.roots(), kNow + kLife - minutes(1)));
  EXPECT_FALSE(IsTrusted(chain, authority.roots(), kNow + kLife + minutes(1)));
}

TEST(CertificateAuthorityTest, NoCertificateOutlivesItsRoot) {
  const CertificateAuthority authority = MakeAuthority();
  const WallTime late = kNow + kRootLife - hours(1);
  EXPECT_EQ(ReadCertificate(SignWorker(authority, late))->not_after, authority.ends());
  EXPECT_EQ(authority.Sign(NewRequest(), kWorker, kNow + kRootLife, kLife).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST(CertificateAuthorityTest, AnotherAuthorityIsNotTrusted) {
  EXPECT_FALSE(IsTrusted(SignWorker(MakeAuthority()), MakeAuthority().roots()));
}

TEST(CertificateAuthorityTest, EachCertificateHasAnotherSerialNumber) {
  const CertificateAuthority authority = MakeAuthority();
  std::set<std::string> serials;
  for (int i = 0; i < 100; ++i) {
    X509* const certificate = ReadPem(SignWorker(authority));
    BIGNUM* const number = ASN1_INTEGER_to_BN(X509_get_serialNumber(certificate), nullptr);
    EXPECT_EQ(BN_num_bits(number), 127);
    char* const hex = BN_bn2hex(number);
    serials.insert(hex);
    OPENSSL_free(hex);
    BN_free(number);
    X509_free(certificate);
  }
  EXPECT_EQ(serials.size(), 100);
}

TEST(CertificateAuthorityTest, SignsNoBadRequestAndNoBadIdentity) {
  const CertificateAuthority authority = MakeAuthority();
  EXPECT_FALSE(authority.Sign("request", kWorker, kNow, kLife).ok());
  PeerIdentity identity = kWorker;
  identity.job_uid = "u,DNS:other";
  EXPECT_FALSE(authority.Sign(NewRequest(), identity, kNow, kLife).ok());
}

TEST(CertificateAuthorityTest, ALeafSignsNothing) {
  const CertificateAuthority authority = MakeAuthority();
  const PrivateKey key = PrivateKey::Make().value();
  const std::string leaf = authority.Sign(key.MakeRequest().value(), kWorker, kNow, kLife).value();
  EXPECT_EQ(CertificateAuthority::FromIntermediate(leaf, key.ToPem(), authority.roots())
                .status()
                .message(),
            "the certificate may not sign others");
}

TEST(CertificateAuthorityTest, IsReadAsItIsWritten) {
  CertificateAuthority authority = MakeAuthority();
  ASSERT_TRUE(authority.PrepareNext(kNow, kRootLife).ok());
  auto read = CertificateAuthority::FromData(authority.ToData());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->ToData(), authority.ToData());
  EXPECT_EQ(read->ends(), authority.ends());
  ASSERT_TRUE(read->SwitchToNext().ok());
  const auto switched = CertificateAuthority::FromData(read->ToData());
  ASSERT_TRUE(switched.ok()) << switched.status();
  EXPECT_EQ(switched->roots(), read->roots());
  EXPECT_TRUE(IsTrusted(SignWorker(authority), switched->roots()));
  EXPECT_TRUE(IsTrusted(SignWorker(*switched), switched->roots()));
}

TEST(CertificateAuthorityTest, AnotherFormatIsRefusedNamingBoth) {
  CertificateAuthority::Data data = MakeAuthority().ToData();
  data["format"] = "2";
  const absl::Status status = CertificateAuthority::FromData(data).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(status.message(),
            "the certificate authority is stored in format \"2\", this program knows format 1");
  EXPECT_FALSE(CertificateAuthority::FromData({}).ok());
}

TEST(CertificateAuthorityTest, DataThatDoesNotFitIsRefusedNamingTheKey) {
  CertificateAuthority authority = MakeAuthority();
  ASSERT_TRUE(authority.PrepareNext(kNow, kRootLife).ok());
  const CertificateAuthority::Data good = authority.ToData();
  const CertificateAuthority::Data other = MakeAuthority().ToData();
  for (const auto& [key, value] : good) {
    if (key == "format") {
      continue;
    }
    CertificateAuthority::Data data = good;
    data[key] = "x";
    const absl::Status status = CertificateAuthority::FromData(data).status();
    EXPECT_TRUE(std::string(status.message()).starts_with(key + ": ")) << status;
  }
  CertificateAuthority::Data data = good;
  data["signer.key"] = other.at("signer.key");
  EXPECT_EQ(CertificateAuthority::FromData(data).status().message(),
            "signer.crt: the certificate is not that of the key");
}

TEST(CertificateAuthorityTest, ARollOverOverlaps) {
  CertificateAuthority authority = MakeAuthority();
  const std::string before = authority.roots();
  const std::string old_leaf = SignWorker(authority);

  ASSERT_TRUE(authority.PrepareNext(kNow, kRootLife).ok());
  EXPECT_FALSE(authority.PrepareNext(kNow, kRootLife).ok());
  const std::string prepared = authority.roots();
  EXPECT_TRUE(IsTrusted(SignWorker(authority), before));  // the next one signs nothing yet

  ASSERT_TRUE(authority.SwitchToNext().ok());
  EXPECT_FALSE(authority.SwitchToNext().ok());
  EXPECT_FALSE(authority.PrepareNext(kNow, kRootLife).ok());
  const std::string new_leaf = SignWorker(authority);
  EXPECT_TRUE(IsTrusted(new_leaf, prepared));
  EXPECT_FALSE(IsTrusted(new_leaf, before));
  EXPECT_TRUE(IsTrusted(old_leaf, authority.roots()));

  authority.DropPrevious();
  EXPECT_TRUE(IsTrusted(new_leaf, authority.roots()));
  EXPECT_FALSE(IsTrusted(old_leaf, authority.roots()));
  EXPECT_TRUE(authority.PrepareNext(kNow, kRootLife).ok());
}

TEST(CertificateAuthorityTest, AnIntermediateSignsUnderItsRoot) {
  const Intermediate given;
  auto authority =
      CertificateAuthority::FromIntermediate(given.chain, given.key.ToPem(), given.root);
  ASSERT_TRUE(authority.ok()) << authority.status();
  EXPECT_EQ(authority->roots(), given.root);
  EXPECT_TRUE(IsTrusted(SignWorker(*authority), given.root));
  EXPECT_EQ(VerifyCertificate(SignWorker(*authority), given.root, kNow)->identity, kWorker);
}

CertificateAuthority GivenBy(const Intermediate& given) {
  return CertificateAuthority::FromIntermediate(given.chain, given.key.ToPem(), given.root).value();
}

TEST(CertificateAuthorityTest, AnIntermediateIsReadAsItIsWritten) {
  CertificateAuthority authority = GivenBy({});
  ASSERT_TRUE(authority.PrepareGiven(GivenBy({})).ok());
  const auto read = CertificateAuthority::FromData(authority.ToData());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(read->is_given());
  EXPECT_TRUE(read->SignsAs(authority));
  EXPECT_EQ(read->ToData(), authority.ToData());
  EXPECT_EQ(read->roots(), authority.roots());
  CertificateAuthority::Data data = authority.ToData();
  data["signer.ca"] = data["next.ca"];
  EXPECT_EQ(CertificateAuthority::FromData(data).status().message(),
            "signer.ca: no root leads to the certificate that signs");
}

TEST(CertificateAuthorityTest, AnIntermediateOfTheSameRootNeedsNoOverlap) {
  const Intermediate first;
  const Intermediate second = first.Renewed();
  CertificateAuthority authority = GivenBy(first);
  const std::string old_leaf = SignWorker(authority);
  ASSERT_TRUE(authority.PrepareGiven(GivenBy(second)).ok());
  EXPECT_TRUE(authority.next_is_trusted());
  EXPECT_EQ(authority.roots(), first.root) << "each once";
  ASSERT_TRUE(authority.SwitchToNext().ok());
  EXPECT_TRUE(authority.SignsAs(GivenBy(second)));
  EXPECT_FALSE(authority.has_previous());
  EXPECT_TRUE(IsTrusted(old_leaf, authority.roots()));
  EXPECT_TRUE(IsTrusted(SignWorker(authority), first.root));
}

TEST(CertificateAuthorityTest, RootsOfOurOwnAndAnIssuersOverlapLikewise) {
  CertificateAuthority authority = MakeAuthority();
  const std::string own_leaf = SignWorker(authority);
  ASSERT_TRUE(authority.PrepareGiven(GivenBy({})).ok());
  EXPECT_FALSE(authority.next_is_trusted());
  const std::string prepared = authority.roots();
  ASSERT_TRUE(authority.SwitchToNext().ok());
  EXPECT_TRUE(authority.has_previous());
  EXPECT_TRUE(IsTrusted(SignWorker(authority), prepared));
  EXPECT_TRUE(IsTrusted(own_leaf, authority.roots()));
  authority.DropPrevious();
  EXPECT_FALSE(IsTrusted(own_leaf, authority.roots()));
  ASSERT_TRUE(authority.PrepareNext(kNow, kRootLife).ok()) << "and back";
  ASSERT_TRUE(authority.SwitchToNext().ok());
  EXPECT_FALSE(authority.is_given());
}

TEST(CertificateAuthorityTest, AnIntermediateLeavesRoomForAnotherAndForWhatItSigns) {
  const Intermediate given;
  const std::string key = given.key.ToPem();
  const std::string two = given.root + Intermediate().root;
  EXPECT_TRUE(CertificateAuthority::FromIntermediate(given.chain, key, two).ok());
  EXPECT_FALSE(
      CertificateAuthority::FromIntermediate(given.chain, key, two + Intermediate().root).ok());
  std::string chain = given.chain;
  for (std::size_t i = 1; i < kMostChain; ++i) {
    chain += given.chain;
  }
  EXPECT_FALSE(CertificateAuthority::FromIntermediate(chain, key, given.root).ok());
}

TEST(CertificateAuthorityTest, AnIntermediateOfAnotherRootOrKeyIsRefused) {
  const Intermediate given;
  const Intermediate other;
  const std::string key = given.key.ToPem();
  EXPECT_FALSE(CertificateAuthority::FromIntermediate(given.chain, key, other.root).ok());
  EXPECT_FALSE(CertificateAuthority::FromIntermediate(other.chain, key, given.root).ok());
  EXPECT_FALSE(CertificateAuthority::FromIntermediate(given.chain, key, "").ok());
}

TEST(CertificateTest, OnlyOneIdentityIsReadAsSubject) {
  const PrivateKey key = PrivateKey::Make().value();
  const std::string uri = "URI:" + FormatIdentity(kWorker);
  const auto read = [&](const std::string& names) {
    return ReadCertificate(Build({key, key, "the root", {{NID_subject_alt_name, names}}})).ok();
  };
  EXPECT_TRUE(read(uri));
  EXPECT_FALSE(read(uri + ",DNS:localhost"));
  EXPECT_FALSE(read(uri + "," + uri));
  EXPECT_FALSE(read("DNS:localhost"));
  EXPECT_FALSE(read("URI:https://adamant.local"));
  EXPECT_FALSE(ReadCertificate(Build({key, key, "the root", {}})).ok());
}

TEST(CertificateTest, CertificatesForOtherPurposesAreNotVerified) {
  const Intermediate given;
  const PrivateKey key = PrivateKey::Make().value();
  const auto verify = [&](const std::string& purposes) {
    return VerifyCertificate(Build({key,
                                    given.root_key,
                                    "leaf",
                                    {{NID_subject_alt_name, "URI:" + FormatIdentity(kWorker)},
                                     {NID_ext_key_usage, purposes}}}),
                             given.root,
                             kNow);
  };
  EXPECT_TRUE(verify("serverAuth,clientAuth").ok()) << verify("serverAuth,clientAuth").status();
  EXPECT_EQ(verify("serverAuth").status().code(), absl::StatusCode::kUnauthenticated);
  EXPECT_FALSE(verify("clientAuth").ok());
  EXPECT_FALSE(verify("codeSigning").ok());
}

TEST(CertificateTest, TextsThatAreTooLongOrNoCertificatesAreRefused) {
  const CertificateAuthority authority = MakeAuthority();
  std::string chain;
  for (std::size_t i = 0; i <= kMostChain; ++i) {
    chain += SignWorker(authority);
  }
  EXPECT_FALSE(ReadCertificate(chain).ok());
  EXPECT_FALSE(ReadCertificate("").ok());
  EXPECT_FALSE(ReadCertificate(std::string(65 << 10, ' ')).ok());
  EXPECT_FALSE(ReadCertificate(SignWorker(authority) + "-----BEGIN CERTIFICATE-----\nx\n").ok());
}

}  // namespace
}  // namespace adamant::security
