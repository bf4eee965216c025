#include "services/common/service/identity_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/fakes/becomes.h"
#include "tests/fakes/fake_certificates.h"
#include "tests/fakes/required_tls13.h"
#include "tests/unit/services/common/security/certified.h"

namespace adamant::service {
namespace {

namespace fs = std::filesystem;

using fakes::Becomes;
using security::As;
using security::Certified;
using security::kWorker;
using security::PeerIdentity;
using security::Role;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();

TEST(RenewAfterTest, IsWhatTheOperatorSaysWhereThatMakesSense) {
  EXPECT_EQ(RenewAfter(3600, hours(24)), hours(1));
  EXPECT_EQ(RenewAfter(1, hours(24)), seconds(1));
  EXPECT_EQ(RenewAfter(0, hours(24)), hours(16));
  EXPECT_EQ(RenewAfter(kMost, hours(24)), hours(16));
  EXPECT_EQ(RenewAfter(60, seconds(0)), seconds(1));
  EXPECT_EQ(RenewAfter(0, -hours(1)), seconds(1));
}

class IdentityClientTest : public testing::Test {
 protected:
  IdentityClientTest() { WriteToken("first"); }
  ~IdentityClientTest() override { fs::remove_all(folder_); }

  static fs::path NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-identity-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  // At once, as the kubelet does.
  void WriteToken(const std::string& token) const {
    std::ofstream(folder_ / "next") << token;
    fs::rename(folder_ / "next", folder_ / "token");
  }

  // Content of a certificate.
  struct Content {
    PeerIdentity identity = kWorker;
    seconds life = hours(24);
    std::uint32_t renew_after = 3600;
  };

  grpc::Status Sign(const Content& content,
                    const v1::CertificateRequest& request,
                    v1::Certificate& answer) {
    answer.set_chain(
        authority_
            .Sign(
                request.request(), content.identity, std::chrono::system_clock::now(), content.life)
            .value());
    answer.set_roots(authority_.roots());
    answer.set_renew_after_seconds(content.renew_after);
    return grpc::Status::OK;
  }

  fakes::FakeCertificates::Answer Signing(const Content& content) {
    return [this, content](const v1::CertificateRequest& request, v1::Certificate& answer) {
      return Sign(content, request, answer);
    };
  }

  // As `tries`, one after another, and then as `last`.
  static fakes::FakeCertificates::Answer InTurn(std::vector<fakes::FakeCertificates::Answer> tries,
                                                fakes::FakeCertificates::Answer last) {
    const auto next = std::make_shared<std::size_t>(0);
    return [tries = std::move(tries), last = std::move(last), next](
               const v1::CertificateRequest& request, v1::Certificate& answer) {
      return *next < tries.size() ? tries[(*next)++](request, answer) : last(request, answer);
    };
  }

  static fakes::FakeCertificates::Answer Failing(grpc::StatusCode code) {
    return [code](const v1::CertificateRequest&, v1::Certificate&) {
      return grpc::Status(code, "so it is");
    };
  }

  void Serve(fakes::FakeCertificates::Answer answer) {
    server_ = std::make_unique<fakes::FakeCertificates>(operator_, std::move(answer));
    client_ = std::make_unique<IdentityClient>(IdentityClient::Options{
        .flags = {.certificates = server_->address(),
                  .tls_token = folder_ / "token",
                  .trust_domain = kWorker.trust_domain,
                  .name_space = kWorker.name_space,
                  .roots = first_roots_},
        .identity = kWorker,
        .pauses = {.initial = milliseconds(1), .max = milliseconds(10)},
        .renewal_pauses = {.initial = milliseconds(10), .max = milliseconds(50)}});
  }

  absl::Status Start() {
    return client_->Start([this](const absl::Status& status) {
      reason_ = status;
      ++replaced_;
    });
  }

  [[nodiscard]] std::uint64_t version() const {
    const auto identity = client_->store()->Get();
    return identity == nullptr ? 0 : identity->version;
  }

  const fs::path folder_ = NewFolder();
  security::CertificateAuthority authority_ = security::MakeAuthority();
  const std::string first_roots_ = authority_.roots();
  std::shared_ptr<security::IdentityStore> operator_ = Certified(authority_, As(Role::kOperator));
  std::unique_ptr<fakes::FakeCertificates> server_;

  absl::Status reason_;  // before replaced_
  std::atomic<int> replaced_ = 0;
  std::unique_ptr<IdentityClient> client_;  // last: its thread uses the others
};

TEST_F(IdentityClientTest, GetsACertificateForItsToken) {
  WriteToken("first\n");
  Serve(Signing({}));
  EXPECT_EQ(client_->store()->Get(), nullptr);
  const absl::Status status = Start();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(client_->store()->Get()->content.identity, kWorker);
  EXPECT_EQ(client_->store()->Get()->roots, authority_.roots());
  ASSERT_EQ(server_->requests().size(), 1u);
  EXPECT_EQ(server_->requests()[0].token(), "first");
}

TEST_F(IdentityClientTest, RenewsWithANewKeyAndTheTokenOfThen) {
  Serve(InTurn({Signing({.renew_after = 1})}, Signing({})));
  ASSERT_TRUE(Start().ok());
  const std::string first_key = client_->store()->Get()->key;
  WriteToken("second");
  ASSERT_TRUE(Becomes([this] { return version() == 2; }));
  EXPECT_NE(client_->store()->Get()->key, first_key);
  ASSERT_EQ(server_->requests().size(), 2u);
  EXPECT_EQ(server_->requests()[1].token(), "second");
  EXPECT_EQ(replaced_, 0);
}

TEST_F(IdentityClientTest, RenewsUnderTheRootsThatItWasToldLast) {
  ASSERT_TRUE(authority_.PrepareNext(std::chrono::system_clock::now(), hours(1000)).ok());
  Serve(InTurn({Signing({.renew_after = 1})}, Signing({})));
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(authority_.SwitchToNext().ok());
  authority_.DropPrevious();
  security::Renew(*operator_, authority_, As(Role::kOperator));
  ASSERT_TRUE(Becomes([this] { return version() == 2; }));
  EXPECT_EQ(client_->store()->Get()->roots, authority_.roots());
}

TEST_F(IdentityClientTest, ARefusalAtTheStartIsTheEnd) {
  Serve(Failing(grpc::StatusCode::PERMISSION_DENIED));
  EXPECT_TRUE(absl::IsPermissionDenied(Start()));
  EXPECT_EQ(server_->requests().size(), 1u);
}

TEST_F(IdentityClientTest, ARefusedRenewalIsToldOnce) {
  Serve(InTurn({Signing({.renew_after = 1})}, Failing(grpc::StatusCode::PERMISSION_DENIED)));
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Becomes([this] { return replaced_ > 0; }));
  EXPECT_TRUE(absl::IsPermissionDenied(reason_)) << reason_;
  EXPECT_EQ(version(), 1u);
  std::this_thread::sleep_for(milliseconds(200));
  EXPECT_EQ(replaced_, 1);
  EXPECT_EQ(server_->requests().size(), 2u);
}

TEST_F(IdentityClientTest, TriesUntilOperatorsAnswer) {
  Serve(InTurn({Failing(grpc::StatusCode::UNAVAILABLE),
                Failing(grpc::StatusCode::UNAUTHENTICATED),
                Failing(grpc::StatusCode::INVALID_ARGUMENT)},
               Signing({})));
  const absl::Status status = Start();
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(server_->requests().size(), 4u);
}

TEST_F(IdentityClientTest, KeepsWhatItHasWhileNobodyRenewsIt) {
  Serve(InTurn({Signing({.renew_after = 1}),
                Failing(grpc::StatusCode::UNAVAILABLE),
                Failing(grpc::StatusCode::UNAVAILABLE)},
               Signing({})));
  ASSERT_TRUE(Start().ok());
  ASSERT_TRUE(Becomes([this] { return server_->requests().size() >= 2u; }));
  EXPECT_NE(client_->store()->Get(), nullptr);
  ASSERT_TRUE(Becomes([this] { return version() == 2; }));
  EXPECT_EQ(server_->requests().size(), 4u);
  EXPECT_EQ(replaced_, 0);
}

TEST_F(IdentityClientTest, TakesNoAnswerThatIsNotAsItShouldBe) {
  PeerIdentity other = kWorker;
  ++other.generation;
  const auto spoilt = [this](void (*spoil)(v1::Certificate&)) {
    return [this, spoil](const v1::CertificateRequest& request, v1::Certificate& answer) {
      const grpc::Status status = Sign({}, request, answer);
      spoil(answer);
      return status;
    };
  };
  const auto of_another_key = [this](const v1::CertificateRequest&, v1::Certificate& answer) {
    v1::CertificateRequest request;
    request.set_request(security::PrivateKey::Make()->MakeRequest().value());
    return Sign({}, request, answer);
  };
  std::vector<fakes::FakeCertificates::Answer> tries = {
      Signing({.identity = other}),
      spoilt([](v1::Certificate& answer) { answer.clear_roots(); }),
      spoilt([](v1::Certificate& answer) { answer.clear_chain(); }),
      spoilt([](v1::Certificate& answer) { answer.set_chain(std::string(100, '\0')); }),
      spoilt([](v1::Certificate& answer) { answer.set_roots(security::MakeAuthority().roots()); }),
      spoilt([](v1::Certificate& answer) { answer.set_roots(answer.chain()); }),
      of_another_key};
  const std::size_t wrong = tries.size();
  Serve(InTurn(std::move(tries), Signing({})));
  const absl::Status status = Start();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(server_->requests().size(), wrong + 1);
  EXPECT_EQ(version(), 1u);
}

TEST_F(IdentityClientTest, OddTimesOfRenewalDoNotMakeItAskAtOnce) {
  for (const std::uint32_t odd : {std::uint32_t{0}, kMost}) {
    Serve(Signing({.renew_after = odd}));
    ASSERT_TRUE(Start().ok());
    std::this_thread::sleep_for(milliseconds(300));
    EXPECT_EQ(server_->requests().size(), 1u) << odd;
    client_.reset();
  }
}

TEST_F(IdentityClientTest, GivesItsTokenToOperatorsAlone) {
  operator_ = Certified(authority_, As(Role::kWorker));
  Serve(Signing({}));
  absl::Status status;
  std::jthread starter([&] { status = Start(); });
  std::this_thread::sleep_for(milliseconds(300));
  client_->Stop();
  starter.join();
  EXPECT_TRUE(absl::IsCancelled(status)) << status;
  EXPECT_TRUE(server_->requests().empty());
}

TEST_F(IdentityClientTest, AMissingTokenIsWaitedFor) {
  fs::remove(folder_ / "token");
  Serve(Signing({}));
  absl::Status status;
  std::jthread starter([&] { status = Start(); });
  std::this_thread::sleep_for(milliseconds(100));
  WriteToken("late");
  starter.join();
  ASSERT_TRUE(status.ok()) << status;
  EXPECT_EQ(server_->requests().back().token(), "late");
}

}  // namespace
}  // namespace adamant::service
