// What strangers cost a process that serves the control port.
#include "tests/fakes/flood.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <iostream>
#include <optional>
#include <string>

#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/rpc/channel.h"
#include "services/common/service/control_stream.h"
#include "tests/fakes/port_attack.h"

namespace adamant::control {
namespace {

constexpr char kAttend[] = "/adamant.v1.Controller/Attend";
constexpr char kGetStatus[] = "/adamant.v1.Controller/GetStatus";
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

class FloodTest : public testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> in{};
    std::array<int, 2> out{};
    ASSERT_EQ(pipe(in.data()), 0);
    ASSERT_EQ(pipe(out.data()), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    posix_spawn_file_actions_addclose(&actions, in[1]);
    std::string path = CONTROL_ENDPOINT_PATH;
    std::array<char*, 2> argv = {path.data(), nullptr};
    ASSERT_EQ(posix_spawn(&pid_, path.c_str(), &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    input_ = in[1];
    output_ = out[0];
    address_ = ReadLine();
    before_ = fakes::PeakBytes(pid_);
    ASSERT_GT(before_, 0u);
  }

  void TearDown() override {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    close(input_);
    close(output_);
  }

  std::string ReadLine() const {
    std::string line;
    for (char c = 0; read(output_, &c, 1) == 1 && c != '\n';) {
      line += c;
    }
    return line;
  }

  void ExpectCheap(const char* method, const std::optional<std::string>& job) {
    EXPECT_EQ(fakes::Run({.address = address_, .method = method, .job = job}), 0u);
    const std::uint64_t cost = fakes::PeakBytes(pid_) - before_;
    RecordProperty("MegaBytes", static_cast<int>(cost >> 20));
    EXPECT_LE(cost, kMostBytes) << (cost >> 20) << " MB";
  }

  // The server lives, and lets members in.
  void ExpectServes() {
    service::ControlStream stream(address_);
    stream.Join({.id = {.role = protocol::Role::kWorker}, .uid = "me"}, "mine");
    EXPECT_EQ(ReadLine(), "joined");
  }

  pid_t pid_ = 0;
  int input_ = -1;
  int output_ = -1;
  std::string address_;
  std::uint64_t before_ = 0;
};

TEST_F(FloodTest, OfFirstMessagesThatNameNoJob) {
  ExpectCheap(kAttend, std::nullopt);
  ExpectServes();
}

TEST_F(FloodTest, OfFirstMessagesForAJobThatIsNotLed) {
  ExpectCheap(kAttend, "another");
  ExpectServes();
}

TEST_F(FloodTest, OfFirstMessagesForAJobThatIsLed) {
  ExpectCheap(kAttend, "mine");
  ExpectServes();
}

TEST_F(FloodTest, OfLargeQuestions) {
  ExpectCheap(kGetStatus, std::nullopt);
  ExpectServes();
}

TEST_F(FloodTest, OfConnections) {
  const fakes::Port port{.address = address_,
                         .methods = {kAttend, kGetStatus, "/grpc.health.v1.Health/Check"}};
  const auto is_answered = [this] {
    const auto stub = v1::Controller::NewStub(rpc::NewChannel(address_, 1 << 20));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    v1::GetTermRequest request;
    request.set_job("mine");
    v1::Term reply;
    return stub->GetTerm(&context, request, &reply).ok();
  };
  const fakes::Damage damage = fakes::Attack(pid_, {port}, is_answered, std::cout);
  EXPECT_LE(damage.bytes >> 20, 64u);
  EXPECT_LE(damage.slowest.count(), 5'000);  // 1,000 where nothing else runs
  ExpectServes();
}

}  // namespace
}  // namespace adamant::control
