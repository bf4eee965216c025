// The program over real gRPC and RocksDB, killed and started again.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/parameter_server.grpc.pb.h"
#include "services/common/job/job.h"
#include "tests/fakes/exchange_client.h"
#include "tests/fakes/fake_controller.h"

namespace adamant::parameter_server {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kJobUid = 7;
constexpr std::uint32_t kBuckets = 3;
constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;
constexpr std::size_t kShardElements = 250;  // shard 0: conv1.weight of adam-mnist

constexpr const char* kManifest = R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    train: {digits: {seed: 1, examples: 1000}}
    validation: {digits: {seed: 2, examples: 100}}
  distribution:
    parameterServers: {count: 1, buckets: 3, persistence: {flushInterval: 100ms}}
)";

class ParameterServerProcessTest : public testing::Test {
 protected:
  ~ParameterServerProcessTest() override {
    if (pid_ > 0) {
      Signal(SIGKILL);
    }
    fs::remove_all(folder_);
  }

  static fs::path NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-ps-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  /// Starts the program on the same folder and lets it join; the map says `created`.
  void Start(bool created) {
    controller_ = std::make_unique<fakes::FakeController>();
    std::vector<std::string> flags = {PARAMETER_SERVER_PATH,
                                      "--controller",
                                      controller_->address(),
                                      "--slot",
                                      "0",
                                      "--data-dir",
                                      folder_ / "data"};
    std::vector<char*> argv;
    for (std::string& flag : flags) {
      argv.push_back(flag.data());
    }
    argv.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&pid_, PARAMETER_SERVER_PATH, nullptr, nullptr, argv.data(), environ), 0);
    const auto join = controller_->Receive();
    ASSERT_TRUE(join.has_value() && join->has_join());
    address_ = join->join().address();
    v1::ControllerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_term(1);
    welcome.set_incarnation(++incarnation_);
    welcome.set_job_uid(kJobUid);
    const job::ParseResult parsed = job::ParseJob(kManifest, "job.yaml");
    ASSERT_NE(parsed.job, nullptr);
    *welcome.mutable_job() = *parsed.job;
    controller_->Send(message);
    SendMap(created);
    buckets_ready_ = controller_->Receive()->buckets_ready();
    ASSERT_EQ(static_cast<std::uint32_t>(buckets_ready_.buckets_size()), kBuckets);
  }

  void SendMap(bool created) {
    v1::ControllerMessage message;
    message.mutable_membership()->set_version(created ? 2 : 1);
    for (std::uint32_t bucket = 0; bucket < kBuckets; ++bucket) {
      v1::Bucket& record = *message.mutable_membership()->add_buckets();
      record.set_epoch(created ? 2 : 1);
      record.set_created(created);
    }
    controller_->Send(message);
  }

  /// The first start of a job.
  void StartNew() {
    Start(false);
    SendMap(true);
    ASSERT_TRUE(controller_->Receive()->has_buckets_ready());
    Connect();
    initial_ = Fetch().second;
    ASSERT_EQ(initial_.size(), kShardElements);
  }

  void Restart() {
    Start(true);
    for (const v1::BucketState& bucket : buckets_ready_.buckets()) {
      ASSERT_FALSE(bucket.lost()) << bucket.detail();
    }
    Connect();
  }

  void Connect() {
    client_ = std::make_unique<fakes::ExchangeClient>(
        rpc::OpenFrameStream(address_, "/adamant.v1.ParameterServer/Exchange", kMaxBytes));
    const auto refused = client_->Hello(kJobUid, 0, 1);
    ASSERT_TRUE(refused.ok()) << refused.status();
    ASSERT_EQ(*refused, "");
  }

  /// Ends the process and returns its exit code, or minus the signal.
  int Signal(int signal) {
    kill(pid_, signal);
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  /// Adds one to every weight of shard 0.
  v1::ShardAck Push(std::uint64_t sequence) {
    v1::ExchangeRequest request;
    v1::ShardUpdate& update = *request.mutable_push()->add_updates();
    update.set_bucket_epoch(2);
    update.set_sequence(sequence);
    const auto reply = client_->Call(request, std::vector<float>(kShardElements, 1));
    EXPECT_TRUE(reply.ok()) << reply.status();
    return reply->header.push().acks(0);
  }

  /// Version and values of shard 0.
  std::pair<std::uint64_t, std::vector<float>> Fetch(std::uint64_t snapshot = 0) {
    v1::ExchangeRequest request;
    request.mutable_fetch()->add_shards(0);
    request.mutable_fetch()->set_snapshot(snapshot);
    const auto reply = client_->Call(request);
    EXPECT_TRUE(reply.ok()) << reply.status();
    EXPECT_EQ(reply->header.fetch().values(0).outcome(), v1::ShardValue::FOUND);
    return {reply->header.fetch().values(0).version(), reply->values};
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

  const fs::path folder_ = NewFolder();
  std::unique_ptr<fakes::FakeController> controller_;
  pid_t pid_ = 0;
  std::uint64_t incarnation_ = 0;
  std::string address_;
  v1::BucketsReady buckets_ready_;
  std::unique_ptr<fakes::ExchangeClient> client_;
  std::vector<float> initial_;
};

TEST_F(ParameterServerProcessTest, AKilledServerComesBackWithAllThatWasFlushed) {
  StartNew();
  EXPECT_EQ(Push(1).outcome(), v1::ShardAck::APPLIED);
  EXPECT_EQ(Push(2).outcome(), v1::ShardAck::APPLIED);
  v1::ParameterServerProgress progress;
  do {
    progress = controller_->ReceiveHeartbeat().parameter_server();
  } while (progress.updates_applied() < 2 || progress.dirty_bytes() > 0);
  Push(3);
  EXPECT_EQ(Signal(SIGKILL), -SIGKILL);

  Restart();
  const auto [version, values] = Fetch();
  EXPECT_GE(version, 2u);
  EXPECT_LE(version, 3u);
  ExpectPushed(version, values);
  EXPECT_EQ(Push(2).outcome(), v1::ShardAck::DUPLICATE);
  EXPECT_EQ(Push(version + 1).outcome(), v1::ShardAck::APPLIED);
}

TEST_F(ParameterServerProcessTest, SigtermFlushesEverything) {
  StartNew();
  for (std::uint64_t sequence = 1; sequence <= 5; ++sequence) {
    Push(sequence);
  }
  EXPECT_EQ(Signal(SIGTERM), 0);
  Restart();
  const auto [version, values] = Fetch();
  EXPECT_EQ(version, 5u);
  ExpectPushed(version, values);
}

TEST_F(ParameterServerProcessTest, AServerWithoutItsShardsSaysSo) {
  StartNew();
  EXPECT_EQ(Signal(SIGKILL), -SIGKILL);
  fs::remove_all(folder_ / "data");
  Start(true);
  const v1::BucketState& bucket = buckets_ready_.buckets(0);
  EXPECT_TRUE(bucket.lost());
  EXPECT_NE(bucket.detail().find("is missing"), std::string::npos) << bucket.detail();
}

TEST_F(ParameterServerProcessTest, SnapshotsSurvive) {
  StartNew();
  Push(1);
  v1::ControllerMessage message;
  message.mutable_take_snapshot()->set_snapshot(4);
  controller_->Send(message);
  const auto taken = controller_->Receive();
  EXPECT_TRUE(taken->snapshot_taken().ok()) << taken->snapshot_taken().error();
  Push(2);
  EXPECT_EQ(Signal(SIGKILL), -SIGKILL);
  Restart();
  ExpectPushed(1, Fetch(4).second);
}

TEST_F(ParameterServerProcessTest, RecordsSurvive) {
  StartNew();
  const auto records = v1::ParameterServer::NewStub(
      grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  v1::PutRecordRequest put;
  put.set_job_uid(kJobUid);
  put.set_key("ledger/0");
  put.set_value("counted");
  v1::PutRecordReply stored;
  grpc::ClientContext put_context;
  ASSERT_TRUE(records->PutRecord(&put_context, put, &stored).ok());
  EXPECT_EQ(stored.outcome(), v1::PutRecordReply::STORED);
  EXPECT_EQ(stored.version(), 1u);
  EXPECT_EQ(Signal(SIGKILL), -SIGKILL);

  Restart();
  const auto restarted = v1::ParameterServer::NewStub(
      grpc::CreateChannel(address_, grpc::InsecureChannelCredentials()));
  v1::GetRecordRequest get;
  get.set_job_uid(kJobUid);
  get.set_key("ledger/0");
  v1::GetRecordReply found;
  grpc::ClientContext get_context;
  ASSERT_TRUE(restarted->GetRecord(&get_context, get, &found).ok());
  EXPECT_EQ(found.outcome(), v1::GetRecordReply::FOUND);
  EXPECT_EQ(found.value(), "counted");
}

}  // namespace
}  // namespace adamant::parameter_server
