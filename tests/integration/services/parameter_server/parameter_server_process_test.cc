// The program over real gRPC and disk, alone, killed and started again.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/adamant/v1/parameter_server.grpc.pb.h"
#include "services/common/rpc/door.h"
#include "services/common/rpc/stream_guard.h"
#include "tests/fakes/port_attack.h"
#include "tests/integration/services/parameter_server/server_process.h"

namespace adamant::parameter_server {
namespace {

class ParameterServerProcessTest : public testing::Test {
 protected:
  /// Gives all buckets to the server and waits until it has answered for each.
  void Assign(ConfigurationVersion version, bool created) {
    v1::Membership membership;
    membership.set_version(2 * version);
    *membership.add_members() = server_.member();
    for (BucketId bucket = 0; bucket < ServerProcess::kBuckets; ++bucket) {
      v1::Configuration& record = *membership.add_buckets();
      record.set_epoch(version);
      record.set_generation(version);
      *record.mutable_primary() = server_.server();
      *record.add_members() = server_.server();
      record.set_created(created);
    }
    server_.Send(membership);
    states_.clear();
    while (states_.size() < ServerProcess::kBuckets) {
      const v1::MemberMessage message = server_.Receive();
      ASSERT_TRUE(message.has_buckets_ready()) << message.DebugString();
      for (const v1::BucketState& state : message.buckets_ready().buckets()) {
        EXPECT_EQ(state.epoch(), version);
        states_.push_back(state);
      }
    }
    for (v1::Configuration& record : *membership.mutable_buckets()) {
      record.set_created(true);
    }
    membership.set_version(2 * version + 1);
    server_.Send(membership);
  }

  /// The first start of a job.
  void StartNew() {
    server_.Start();
    EXPECT_EQ(server_.stored().previous_incarnation(), 0u);
    EXPECT_EQ(server_.stored().buckets_size(), 0);
    Assign(1, false);
    server_.Connect();
    initial_ = server_.Fetch().values;
    ASSERT_EQ(initial_.size(), ServerProcess::kShardElements);
  }

  /// Starts again on the same disk, whose buckets come back.
  void Restart() {
    server_.Start();
    EXPECT_EQ(server_.stored().previous_incarnation(), 1u);
    ASSERT_EQ(static_cast<std::uint32_t>(server_.stored().buckets_size()), ServerProcess::kBuckets);
    for (const v1::StoredBucket& bucket : server_.stored().buckets()) {
      EXPECT_TRUE(bucket.complete()) << bucket.detail();
    }
    Assign(2, true);
    for (const v1::BucketState& state : states_) {
      ASSERT_FALSE(state.lost()) << state.detail();
    }
    server_.Connect();
  }

  /// That shard 0 has had exactly `version` pushes.
  void ExpectPushed(std::uint64_t version, const std::vector<float>& values) const {
    ASSERT_EQ(values.size(), initial_.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      float expected = initial_[i];
      for (std::uint64_t push = 0; push < version; ++push) {
        expected += 1;
      }
      ASSERT_EQ(values[i], expected) << i;
    }
  }

  [[nodiscard]] std::unique_ptr<v1::ParameterServer::Stub> Records() const {
    return v1::ParameterServer::NewStub(
        grpc::CreateChannel(server_.address(), grpc::InsecureChannelCredentials()));
  }

  static std::unique_ptr<grpc::ClientContext> Named() {
    auto context = std::make_unique<grpc::ClientContext>();
    context->AddMetadata(rpc::kJobKey, std::to_string(ServerProcess::kJobUid));
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
    return context;
  }

  /// Whether somebody who comes now gets shard 0.
  [[nodiscard]] bool AnswersAReader() const {
    fakes::ExchangeClient client(server_.OpenExchange());
    v1::ExchangeRequest request;
    v1::ExchangeHello& hello = *request.mutable_hello();
    hello.set_format_version(1);
    hello.set_job_uid(ServerProcess::kJobUid);
    hello.set_read_only(true);
    const auto greeted = client.Call(request);
    if (!greeted.ok() || greeted->header.hello().refused() != "") {
      return false;
    }
    request.mutable_fetch()->add_shards(0);
    const auto reply = client.Call(request);
    return reply.ok() && reply->values == initial_;
  }

  /// Whether a record can be asked for.
  [[nodiscard]] bool AnswersAboutARecord() const {
    v1::GetRecordRequest get;
    get.set_job_uid(ServerProcess::kJobUid);
    get.set_key("ledger/0");
    v1::GetRecordReply found;
    return Records()->GetRecord(Named().get(), get, &found).ok();
  }

  ServerProcess server_{0};
  std::vector<v1::BucketState> states_;
  std::vector<float> initial_;
};

TEST_F(ParameterServerProcessTest, AKilledServerComesBackWithAllThatWasFlushed) {
  StartNew();
  EXPECT_EQ(server_.Push(1).outcome(), v1::ShardAck::APPLIED);
  EXPECT_EQ(server_.Push(2).outcome(), v1::ShardAck::APPLIED);
  v1::ParameterServerProgress progress;
  do {
    progress = server_.controller().ReceiveHeartbeat().parameter_server();
  } while (progress.updates_applied() < 2 || progress.dirty_bytes() > 0);
  ASSERT_EQ(static_cast<std::uint32_t>(progress.buckets_size()), ServerProcess::kBuckets);
  EXPECT_TRUE(progress.buckets(0).serving());
  server_.Push(3);
  EXPECT_EQ(server_.Signal(SIGKILL), -SIGKILL);

  Restart();
  const auto [header, values] = server_.Fetch();
  EXPECT_GE(header.version(), 2u);
  EXPECT_LE(header.version(), 3u);
  ExpectPushed(header.version(), values);
  EXPECT_EQ(server_.Push(2, 2).outcome(), v1::ShardAck::DUPLICATE);
  EXPECT_EQ(server_.Push(header.version() + 1, 2).outcome(), v1::ShardAck::APPLIED);
}

TEST_F(ParameterServerProcessTest, SigtermFlushesEverything) {
  StartNew();
  for (Sequence sequence = 1; sequence <= 5; ++sequence) {
    server_.Push(sequence);
  }
  EXPECT_EQ(server_.Signal(SIGTERM), 0);
  Restart();
  const auto [header, values] = server_.Fetch();
  EXPECT_EQ(header.version(), 5u);
  ExpectPushed(5, values);
}

TEST_F(ParameterServerProcessTest, AServerWithoutItsShardsSaysSo) {
  StartNew();
  EXPECT_EQ(server_.Signal(SIGKILL), -SIGKILL);
  std::filesystem::remove_all(server_.folder() / "data");
  server_.Start();
  Assign(2, true);
  EXPECT_TRUE(states_[0].lost());
  EXPECT_NE(states_[0].detail(), "");
}

TEST_F(ParameterServerProcessTest, AServerWhoseLogIsDamagedBeginsWithoutItsStoreAndSaysWhy) {
  StartNew();
  EXPECT_EQ(server_.Signal(SIGKILL), -SIGKILL);
  const std::filesystem::path data = server_.folder() / "data";
  for (const auto& entry : std::filesystem::directory_iterator(data / "shards" / "records")) {
    if (entry.path().extension() == ".log") {
      std::fstream log(entry.path(), std::ios::in | std::ios::out | std::ios::binary);
      log.seekp(20) << '#';
    }
  }
  server_.Start();
  ASSERT_EQ(static_cast<std::uint32_t>(server_.stored().buckets_size()), ServerProcess::kBuckets);
  EXPECT_FALSE(server_.stored().buckets(0).complete());
  EXPECT_THAT(server_.stored().buckets(0).detail(), testing::HasSubstr("is damaged at byte 0"));
  Assign(2, true);
  EXPECT_TRUE(states_[0].lost());
  EXPECT_TRUE(std::filesystem::exists(data / "shards.damaged" / "records" / "CURRENT"));
  EXPECT_EQ(server_.Signal(SIGTERM), 0);
}

TEST_F(ParameterServerProcessTest, SnapshotsSurvive) {
  StartNew();
  server_.Push(1);
  v1::ControllerMessage message;
  message.mutable_take_snapshot()->set_snapshot(4);
  server_.controller().Send(message);
  const v1::SnapshotTaken taken = server_.Receive().snapshot_taken();
  EXPECT_TRUE(taken.ok()) << taken.error();
  EXPECT_EQ(static_cast<std::uint32_t>(taken.buckets_size()), ServerProcess::kBuckets);
  server_.Push(2);
  EXPECT_EQ(server_.Signal(SIGKILL), -SIGKILL);
  Restart();
  ExpectPushed(1, server_.Fetch(4).values);
}

TEST_F(ParameterServerProcessTest, RecordsSurvive) {
  StartNew();
  v1::PutRecordRequest put;
  put.set_job_uid(ServerProcess::kJobUid);
  put.set_key("ledger/0");
  put.set_value("counted");
  v1::PutRecordReply stored;
  ASSERT_TRUE(Records()->PutRecord(Named().get(), put, &stored).ok());
  EXPECT_EQ(stored.outcome(), v1::PutRecordReply::STORED);
  EXPECT_EQ(stored.version(), 1u);
  put.set_attempt(2);
  put.set_expected_version(1);
  EXPECT_EQ(Records()->PutRecord(Named().get(), put, &stored).error_code(),
            grpc::StatusCode::FAILED_PRECONDITION)
      << "of another attempt";
  put.set_attempt(1);
  put.set_value(std::string((1 << 20) + 1, 'x'));
  EXPECT_THAT(Records()->PutRecord(Named().get(), put, &stored).error_message(),
              testing::HasSubstr("at most 1 MiB"));
  EXPECT_EQ(server_.Signal(SIGKILL), -SIGKILL);

  Restart();
  v1::GetRecordRequest get;
  get.set_job_uid(ServerProcess::kJobUid);
  get.set_key("ledger/0");
  v1::GetRecordReply found;
  ASSERT_TRUE(Records()->GetRecord(Named().get(), get, &found).ok());
  EXPECT_EQ(found.outcome(), v1::GetRecordReply::FOUND);
  EXPECT_EQ(found.value(), "counted");
}

// A running job is upgraded process by process, and those of earlier states name the job in the
// first message alone.
TEST_F(ParameterServerProcessTest, ProcessesOfAnEarlierStateAreLetInAndStay) {
  StartNew();
  fakes::ExchangeClient worker(server_.OpenExchange(""));
  EXPECT_EQ(worker.Hello(ServerProcess::kJobUid, 1, 1).value_or("?"), "");
  std::this_thread::sleep_for(rpc::Door::Limits().most_time + std::chrono::seconds(1));
  v1::ExchangeRequest request;
  request.mutable_fetch()->add_shards(0);
  const auto reply = worker.Call(request);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_EQ(reply->values, initial_);

  const auto records = Records();
  v1::PutRecordRequest put;
  put.set_job_uid(ServerProcess::kJobUid);
  put.set_key("ledger/0");
  put.set_value("counted");
  v1::PutRecordReply stored;
  grpc::ClientContext nameless;
  const grpc::Status put_status = records->PutRecord(&nameless, put, &stored);
  EXPECT_TRUE(put_status.ok()) << put_status.error_message();
  v1::GetRecordRequest get;
  get.set_job_uid(ServerProcess::kJobUid + 1);
  get.set_key("ledger/0");
  v1::GetRecordReply found;
  grpc::ClientContext stranger;
  EXPECT_EQ(records->GetRecord(&stranger, get, &found).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(ParameterServerProcessTest, StrangersCostLittleMemoryAndDoNotKeepWorkersOut) {
  StartNew();
  rlimit files{.rlim_cur = 512, .rlim_max = 512};  // fewer than the strangers' connections
  ASSERT_EQ(prlimit(server_.pid(), RLIMIT_NOFILE, &files, nullptr), 0);
  const std::vector<fakes::Port> ports = {
      {.address = server_.address(),
       .methods = {"/adamant.v1.ParameterServer/Exchange",
                   "/adamant.v1.ParameterServer/GetRecord",
                   "/adamant.v1.ParameterServer/PutRecord",
                   "/grpc.health.v1.Health/Check",
                   "/adamant.v1.ParameterServer/None"}},
      {.address = server_.replication_address(),
       .methods = {"/adamant.v1.Replication/Deliver", "/grpc.health.v1.Health/Check"}},
      {.address = server_.metrics_address(), .methods = {}}};
  const fakes::Damage damage = fakes::Attack(
      server_.pid(),
      ports,
      [this] { return AnswersAReader() && AnswersAboutARecord(); },
      std::cout);
  EXPECT_LE(damage.bytes >> 20, 64u);
  EXPECT_LE(damage.slowest.count(), 5'000);  // 1,000 where nothing else runs
  EXPECT_EQ(server_.Fetch().values, initial_) << "the stream of before is as it was";
}

}  // namespace
}  // namespace adamant::parameter_server
