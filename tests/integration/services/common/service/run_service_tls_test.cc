#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/rpc/frame.h"
#include "services/common/rpc/tls/channel_security.h"
#include "services/common/rpc/tls/server_security.h"
#include "tests/fakes/fake_certificates.h"
#include "tests/fakes/fake_controller.h"
#include "tests/fakes/required_tls13.h"
#include "tests/integration/services/common/http/http_client.h"
#include "tests/unit/services/common/security/certified.h"

namespace adamant::service {
namespace {

namespace fs = std::filesystem;

using security::As;
using security::Certified;
using security::PeerIdentity;
using security::Role;

// Who the process is.
PeerIdentity Self() {
  PeerIdentity self = As(Role::kDataServer);
  self.generation = 1;
  return self;
}

class RunServiceTlsTest : public testing::Test {
 protected:
  RunServiceTlsTest() { std::ofstream(folder_ / "token") << "token"; }
  ~RunServiceTlsTest() override {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fs::remove_all(folder_);
  }

  static fs::path NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-service-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  fakes::FakeCertificates::Answer Signing(std::uint32_t renew_after) {
    return [this, renew_after](const v1::CertificateRequest& request, v1::Certificate& answer) {
      answer.set_chain(authority_
                           .Sign(request.request(),
                                 Self(),
                                 std::chrono::system_clock::now(),
                                 std::chrono::hours(24))
                           .value());
      answer.set_roots(authority_.roots());
      answer.set_renew_after_seconds(renew_after);
      return grpc::Status::OK;
    };
  }

  void Spawn(const std::string& trust_domain = Self().trust_domain) {
    std::vector<std::string> flags = {ECHO_SERVICE_PATH,
                                      "--controller",
                                      controller_.address(),
                                      "--job",
                                      Self().job_uid,
                                      "--slot",
                                      "0",
                                      "--generation",
                                      "1",
                                      "--data-dir",
                                      folder_ / "data",
                                      "--certificates",
                                      certificates_.address(),
                                      "--tls-token",
                                      folder_ / "token",
                                      "--trust-domain",
                                      trust_domain,
                                      "--namespace",
                                      Self().name_space};
    std::vector<char*> argv;
    for (std::string& flag : flags) {
      argv.push_back(flag.data());
    }
    argv.push_back(nullptr);
    ASSERT_EQ(setenv("ADAMANT_ROOTS", authority_.roots().c_str(), 1), 0);
    ASSERT_EQ(posix_spawn(&pid_, ECHO_SERVICE_PATH, nullptr, nullptr, argv.data(), environ), 0);
  }

  int WaitForExit() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    EXPECT_TRUE(WIFEXITED(status));
    return WEXITSTATUS(status);
  }

  // What a process of this role comes to at the service's method for workers.
  [[nodiscard]] absl::Status CallAs(Role role, const std::string& address) const {
    const rpc::ChannelSecurity security{
        .identity = Certified(authority_, As(role)),
        .peer = security::ExpectMember(Self(), Role::kDataServer, 0)};
    return Call(&security, address);
  }

  static absl::Status Call(const rpc::ChannelSecurity* security, const std::string& address) {
    const auto stream =
        rpc::OpenFrameStream(address, "/adamant.v1.DataServer/Work", 1024, {}, "17", security);
    stream->Write({.header = "hello", .payload = {}}).IgnoreError();  // Read says why not
    return stream->Read().status();
  }

  const fs::path folder_ = NewFolder();
  const security::CertificateAuthority authority_ = security::MakeAuthority();
  const std::shared_ptr<security::IdentityStore> operator_ =
      Certified(authority_, As(Role::kOperator));
  fakes::FakeCertificates certificates_{operator_, Signing(3600)};
  fakes::FakeController controller_{"127.0.0.1:0", rpc::ServerSecurity{.identity = operator_}};
  pid_t pid_ = 0;
};

TEST_F(RunServiceTlsTest, JoinsAndServesWithItsCertificate) {
  Spawn();
  const auto join = controller_.Receive();
  ASSERT_TRUE(join.has_value() && join->has_join());
  controller_.Welcome(1, 1, 17);
  controller_.ReceiveHeartbeat();
  const std::string& address = join->join().address();
  const absl::Status let_in = CallAs(Role::kWorker, address);
  EXPECT_TRUE(absl::IsOutOfRange(let_in)) << let_in;
  EXPECT_TRUE(absl::IsUnavailable(Call(nullptr, address)));
  EXPECT_TRUE(absl::IsPermissionDenied(CallAs(Role::kParameterServer, address)));
  EXPECT_THAT(http::Get(join->join().metrics_address(), "/metrics"),
              testing::HasSubstr("adamant_rpc_refused_total{method=\"/adamant.v1.DataServer/Work\","
                                 "reason=\"denied\"} 1"));
}

TEST_F(RunServiceTlsTest, WithoutACertificateItEndsWithCode1) {
  certificates_.SetAnswer([](const v1::CertificateRequest&, v1::Certificate&) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "not the present pod of its slot");
  });
  Spawn();
  EXPECT_EQ(WaitForExit(), 1);
}

TEST_F(RunServiceTlsTest, SigtermWhileItWaitsForACertificateIsCode0) {
  certificates_.SetAnswer([](const v1::CertificateRequest&, v1::Certificate&) {
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "not yet");
  });
  Spawn();
  while (certificates_.requests().empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(pid_, SIGTERM);
  EXPECT_EQ(WaitForExit(), 0);
}

TEST_F(RunServiceTlsTest, AProcessThatWasReplacedEndsWithCode1) {
  certificates_.SetAnswer(Signing(3));
  Spawn();
  ASSERT_TRUE(controller_.Receive()->has_join());
  controller_.Welcome(1, 1, 17);
  certificates_.SetAnswer([](const v1::CertificateRequest&, v1::Certificate&) {
    return grpc::Status(grpc::StatusCode::PERMISSION_DENIED, "not the present pod of its slot");
  });
  EXPECT_EQ(controller_.Receive()->epoch_ended().epoch(), 1000u);  // from Stop
  EXPECT_EQ(WaitForExit(), 1);
}

TEST_F(RunServiceTlsTest, AnImpossibleIdentityIsCode2) {
  Spawn("Not a domain");
  EXPECT_EQ(WaitForExit(), 2);
}

}  // namespace
}  // namespace adamant::service
