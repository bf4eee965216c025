#include "tests/integration/services/parameter_server/server_process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "services/common/job/job.h"

namespace adamant::parameter_server {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMaxBytes = std::uint64_t{64} << 20;

std::string Manifest(std::uint32_t copies) {
  return R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    train: {digits: {seed: 1, examples: 1000}}
    validation: {digits: {seed: 2, examples: 100}}
  distribution:
    parameterServers:
      count: 3
      copies: )" +
         std::to_string(copies) + R"(
      buckets: 3
      persistence: {flushInterval: 100ms}
      failover: {beacon: 100ms, lease: 500ms, grace: 700ms}
)";
}

fs::path NewFolder() {
  std::string name = (fs::temp_directory_path() / "adamant-ps-XXXXXX").string();
  EXPECT_NE(mkdtemp(name.data()), nullptr);
  return name;
}

}  // namespace

ServerProcess::ServerProcess(std::uint32_t slot) : slot_(slot), folder_(NewFolder()) {}

ServerProcess::~ServerProcess() {
  if (pid_ > 0) {
    Signal(SIGKILL);
  }
  fs::remove_all(folder_);
}

void ServerProcess::Start(std::uint32_t copies) {
  controller_ = std::make_unique<fakes::FakeController>();
  std::vector<std::string> flags = {PARAMETER_SERVER_PATH,
                                    "--controller",
                                    controller_->address(),
                                    "--slot",
                                    std::to_string(slot_),
                                    "--data-dir",
                                    folder_ / "data"};
  std::vector<char*> argv;
  for (std::string& flag : flags) {
    argv.push_back(flag.data());
  }
  argv.push_back(nullptr);
  ASSERT_EQ(posix_spawn(&pid_, PARAMETER_SERVER_PATH, nullptr, nullptr, argv.data(), environ), 0);
  const v1::MemberMessage join = Receive();
  ASSERT_TRUE(join.has_join());
  address_ = join.join().address();
  replication_address_ = join.join().replication_address();
  metrics_address_ = join.join().metrics_address();
  v1::ControllerMessage message;
  v1::Welcome& welcome = *message.mutable_welcome();
  welcome.set_term(1);
  welcome.set_incarnation(++incarnation_);
  welcome.set_job_uid(kJobUid);
  const job::ParseResult parsed = job::ParseJob(Manifest(copies), "job.yaml");
  ASSERT_NE(parsed.job, nullptr);
  *welcome.mutable_job() = *parsed.job;
  controller_->Send(message);
  const v1::MemberMessage stored = Receive();
  ASSERT_TRUE(stored.has_stored_buckets()) << stored.DebugString();
  stored_ = stored.stored_buckets();
}

void ServerProcess::SendSignal(int signal) const { kill(pid_, signal); }

int ServerProcess::WaitForExit() {
  int status = 0;
  EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
  pid_ = 0;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

int ServerProcess::Signal(int signal) {
  SendSignal(signal);
  return WaitForExit();
}

v1::MemberMessage ServerProcess::Receive() {
  const auto message = controller_->Receive();
  EXPECT_TRUE(message.has_value()) << "parameter server " << slot_ << " hung up";
  return message.value_or(v1::MemberMessage());
}

void ServerProcess::Send(const v1::Membership& membership) {
  v1::ControllerMessage message;
  *message.mutable_membership() = membership;
  controller_->Send(message);
}

v1::ServerId ServerProcess::server() const {
  v1::ServerId server;
  server.set_slot(slot_);
  server.set_incarnation(incarnation_);
  return server;
}

v1::Member ServerProcess::member() const {
  v1::Member member;
  member.set_role(v1::PARAMETER_SERVER);
  member.set_slot(slot_);
  member.set_incarnation(incarnation_);
  member.set_address(address_);
  member.set_replication_address(replication_address_);
  return member;
}

std::unique_ptr<rpc::FrameStream> ServerProcess::OpenExchange(const std::string& job) const {
  return rpc::OpenFrameStream(address_, "/adamant.v1.ParameterServer/Exchange", kMaxBytes, {}, job);
}

void ServerProcess::Connect() {
  client_ = std::make_unique<fakes::ExchangeClient>(OpenExchange());
  const auto refused = client_->Hello(kJobUid, 0, 1);
  ASSERT_TRUE(refused.ok()) << refused.status();
  ASSERT_EQ(*refused, "");
}

fakes::ExchangeClient::Reply ServerProcess::Call(const v1::ExchangeRequest& request,
                                                 const std::vector<float>& values) {
  const auto reply = client_->Call(request, values);
  EXPECT_TRUE(reply.ok()) << reply.status();
  return reply.value_or(fakes::ExchangeClient::Reply());
}

v1::ShardAck ServerProcess::Push(Sequence sequence, ConfigurationVersion version) {
  v1::ExchangeRequest request;
  v1::ShardUpdate& update = *request.mutable_push()->add_updates();
  update.set_bucket_epoch(version);
  update.set_sequence(sequence);
  v1::ShardAck ack;
  do {
    const auto reply = Call(request, std::vector<float>(kShardElements, 1));
    ack = reply.header.push().acks_size() > 0 ? reply.header.push().acks(0) : v1::ShardAck();
  } while (ack.outcome() == v1::ShardAck::NOT_READY);
  return ack;
}

ServerProcess::Value ServerProcess::Fetch(std::uint64_t snapshot) {
  v1::ExchangeRequest request;
  request.mutable_fetch()->add_shards(0);
  request.mutable_fetch()->set_snapshot(snapshot);
  Value value;
  do {
    auto reply = Call(request, {});
    value.header =
        reply.header.fetch().values_size() > 0 ? reply.header.fetch().values(0) : v1::ShardValue();
    value.values = std::move(reply.values);
  } while (value.header.outcome() == v1::ShardValue::NOT_READY);
  return value;
}

}  // namespace adamant::parameter_server
