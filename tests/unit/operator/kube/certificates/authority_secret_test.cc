#include "operator/kube/certificates/authority_secret.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "services/common/security/certificate.h"
#include "services/common/security/private_key.h"
#include "tests/unit/services/common/security/identities.h"
#include "tests/unit/services/common/security/intermediate.h"

namespace adamant::kube {
namespace {

using security::CertificateAuthority;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;
using testing::HasSubstr;
using Data = AuthoritySecret::Data;
using Step = AuthoritySecret::Step;
using WallTime = AuthoritySecret::WallTime;

constexpr hours kLife{24};
const WallTime kBegin = std::chrono::system_clock::from_time_t(1'800'000'000);

AuthoritySecret ReadOrFail(const Data& data, const std::string& roll_over = "") {
  auto secret = AuthoritySecret::Read(data, roll_over);
  EXPECT_TRUE(secret.ok()) << secret.status();
  return *std::move(secret);
}

Data After(Step step, const Data& data, WallTime now, const std::string& roll_over = "") {
  AuthoritySecret secret = ReadOrFail(data, roll_over);
  EXPECT_EQ(secret.NextStep(now), step);
  const absl::Status taken = secret.Take(step, now, kLife);
  EXPECT_TRUE(taken.ok()) << taken;
  return secret.ToData();
}

Data Made(const std::string& roll_over = "") { return After(Step::kMake, {}, kBegin, roll_over); }

Step NextOf(const Data& data, WallTime now, const std::string& roll_over = "") {
  return ReadOrFail(data, roll_over).NextStep(now);
}

std::string Leaf(const Data& data, WallTime now) {
  const auto request = security::PrivateKey::Make()->MakeRequest();
  return ReadOrFail(data).authority()->Sign(*request, security::kWorker, now, kLife).value();
}

bool IsGood(const std::string& leaf, const Data& data, WallTime now) {
  return security::VerifyCertificate(leaf, ReadOrFail(data).authority()->roots(), now).ok();
}

TEST(AuthoritySecretTest, AnEmptySecretGetsAnAuthorityThatStays) {
  const Data data = Made();
  EXPECT_EQ(data.at("format"), "1");
  EXPECT_EQ(NextOf(data, kBegin), Step::kNone);
  EXPECT_EQ(ReadOrFail(data).authority()->ends(), kBegin + AuthoritySecret::kRootLife);
  EXPECT_TRUE(IsGood(Leaf(data, kBegin), data, kBegin));
}

TEST(AuthoritySecretTest, ARollOverThatIsAskedForGoesByTimeAndIsMadeOnce) {
  const Data made = Made();
  const WallTime asked = kBegin + hours(100);
  const Data prepared = After(Step::kPrepareNext, made, asked, "one");
  const WallTime switch_at = asked + kLife + minutes(10);
  EXPECT_EQ(NextOf(prepared, switch_at - seconds(1), "one"), Step::kNone);
  const Data switched = After(Step::kSwitchToNext, prepared, switch_at, "one");
  const WallTime drop_at = switch_at + kLife + minutes(70);
  EXPECT_EQ(NextOf(switched, drop_at - seconds(1), "one"), Step::kNone);
  const Data dropped = After(Step::kDropPrevious, switched, drop_at, "one");
  EXPECT_EQ(NextOf(dropped, drop_at + hours(1), "one"), Step::kNone);
  EXPECT_EQ(NextOf(dropped, drop_at + hours(1)), Step::kNone) << "the annotation was taken away";
  EXPECT_EQ(NextOf(dropped, drop_at + hours(1), "two"), Step::kPrepareNext);
}

TEST(AuthoritySecretTest, CertificatesAreTrustedToTheirEndDuringARollOver) {
  const Data made = Made();
  const std::string before = Leaf(made, kBegin);
  const Data prepared = After(Step::kPrepareNext, made, kBegin, "one");
  const WallTime switch_at = kBegin + kLife + minutes(10);
  EXPECT_TRUE(IsGood(before, prepared, kBegin + kLife - seconds(1)));
  const std::string last = Leaf(prepared, switch_at - seconds(1));
  const Data switched = After(Step::kSwitchToNext, prepared, switch_at, "one");
  EXPECT_TRUE(IsGood(last, switched, switch_at + kLife - seconds(2)));
  const std::string first = Leaf(switched, switch_at);
  EXPECT_TRUE(IsGood(first, prepared, switch_at)) << "those who have not renewed trust it";
  const Data dropped = After(Step::kDropPrevious, switched, switch_at + kLife + minutes(70), "one");
  EXPECT_FALSE(IsGood(last, dropped, switch_at + seconds(1)));
}

TEST(AuthoritySecretTest, WhatWasAskedForBeforeThereIsAnAuthorityIsDone) {
  EXPECT_EQ(NextOf(Made("one"), kBegin, "one"), Step::kNone);
  EXPECT_EQ(NextOf(Made("one"), kBegin, "two"), Step::kPrepareNext);
}

TEST(AuthoritySecretTest, AnotherOneThatIsAskedForMeanwhileComesAfterwards) {
  const Data prepared = After(Step::kPrepareNext, Made(), kBegin, "one");
  EXPECT_EQ(NextOf(prepared, kBegin, "two"), Step::kNone);
}

TEST(AuthoritySecretTest, ARootIsRolledOverWhenAThirdOfItsLifeIsLeft) {
  const Data data = Made();
  const WallTime due = kBegin + AuthoritySecret::kRootLife * 2 / 3;
  EXPECT_EQ(NextOf(data, due), Step::kNone);
  EXPECT_EQ(NextOf(data, due + seconds(1)), Step::kPrepareNext);
}

CertificateAuthority GivenBy(const security::Intermediate& given) {
  return CertificateAuthority::FromIntermediate(given.chain, given.key.ToPem(), given.root).value();
}

// The step that is due with this issuer is taken.
Data AfterWith(const std::optional<CertificateAuthority>& given,
               Step step,
               const Data& data,
               WallTime now) {
  AuthoritySecret secret = ReadOrFail(data);
  secret.UseIssuer(given);
  EXPECT_EQ(secret.NextStep(now), step);
  const absl::Status taken = secret.Take(step, now, kLife);
  EXPECT_TRUE(taken.ok()) << taken;
  return secret.ToData();
}

TEST(AuthoritySecretTest, WhatAnIssuerGivesSignsFromTheStartAndNoRootIsMade) {
  AfterWith(std::nullopt, Step::kNone, {}, kBegin);
  const CertificateAuthority given = GivenBy({});
  const Data made = AfterWith(given, Step::kMake, {}, kBegin);
  EXPECT_TRUE(ReadOrFail(made).authority()->SignsAs(given));
  const WallTime late = kBegin + AuthoritySecret::kRootLife * 9 / 10;
  AfterWith(given, Step::kNone, made, late);  // the issuer renews it, or nobody does
  AfterWith(std::nullopt, Step::kNone, made, late);
}

TEST(AuthoritySecretTest, AnIssuersRenewalUnderTheSameRootTakesEffectAtOnce) {
  const security::Intermediate first;
  const CertificateAuthority second = GivenBy(first.Renewed());
  const Data made = AfterWith(GivenBy(first), Step::kMake, {}, kBegin);
  const Data prepared = AfterWith(second, Step::kPrepareNext, made, kBegin);
  const Data switched = AfterWith(second, Step::kSwitchToNext, prepared, kBegin);
  EXPECT_TRUE(ReadOrFail(switched).authority()->SignsAs(second));
  AfterWith(second, Step::kNone, switched, kBegin);
}

TEST(AuthoritySecretTest, AnIssuersOtherRootOverlapsAsAnyRoot) {
  const CertificateAuthority next = GivenBy({.root_name = "the next root"});
  const Data made = AfterWith(GivenBy({}), Step::kMake, {}, kBegin);
  const Data prepared = AfterWith(next, Step::kPrepareNext, made, kBegin);
  const WallTime switch_at = kBegin + kLife + minutes(10);
  AfterWith(next, Step::kNone, prepared, switch_at - seconds(1));
  const Data switched = AfterWith(std::nullopt, Step::kSwitchToNext, prepared, switch_at);
  EXPECT_TRUE(IsGood(Leaf(made, kBegin), switched, kBegin + hours(1)));
  EXPECT_TRUE(IsGood(Leaf(switched, switch_at), prepared, switch_at));
  AfterWith(next, Step::kDropPrevious, switched, switch_at + kLife + minutes(70));
}

TEST(AuthoritySecretTest, WhatEndsBeforeItsLeavesWouldIsSwitchedFromInTime) {
  const Data made = AfterWith(GivenBy({}), Step::kMake, {}, kBegin);
  const WallTime ends = ReadOrFail(made).authority()->ends();
  const CertificateAuthority next = GivenBy({});
  const Data late = AfterWith(next, Step::kPrepareNext, made, ends - hours(1));
  AfterWith(next, Step::kNone, late, ends - minutes(11));
  AfterWith(next, Step::kSwitchToNext, late, ends - minutes(10));
}

TEST(AuthoritySecretTest, AnIssuerCanBeTakenAndLeftWhileThereIsAnAuthority) {
  const CertificateAuthority given = GivenBy({});
  Data data = AfterWith(given, Step::kPrepareNext, Made(), kBegin);
  WallTime now = kBegin + kLife + minutes(10);
  data = AfterWith(given, Step::kSwitchToNext, data, now);
  now += kLife + minutes(70);
  data = AfterWith(given, Step::kDropPrevious, data, now);
  EXPECT_TRUE(ReadOrFail(data).authority()->SignsAs(given));
  data = After(Step::kPrepareNext, data, now);
  now += kLife + minutes(10);
  data = After(Step::kSwitchToNext, data, now);
  EXPECT_FALSE(ReadOrFail(data).authority()->is_given());
}

TEST(AuthoritySecretTest, WhatCannotBeReadIsNamed) {
  Data prepared = After(Step::kPrepareNext, Made(), kBegin, "one");
  prepared["switch-at"] = "soon";
  const absl::Status no_time = AuthoritySecret::Read(prepared, "").status();
  EXPECT_TRUE(absl::IsInvalidArgument(no_time)) << no_time;
  EXPECT_THAT(std::string(no_time.message()), HasSubstr("switch-at"));
  Data other = Made();
  other["format"] = "2";
  const absl::Status format = AuthoritySecret::Read(other, "").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(format)) << format;
}

TEST(AuthoritySecretTest, KeysOfLaterOperatorsStay) {
  Data data = Made();
  data["later"] = "kept";
  EXPECT_EQ(After(Step::kPrepareNext, data, kBegin, "one").at("later"), "kept");
}

}  // namespace
}  // namespace adamant::kube
