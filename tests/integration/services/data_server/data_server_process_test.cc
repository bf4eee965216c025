// The program over real gRPC, with a controller, a record store and workers played by the test.

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/data_server.pb.h"
#include "proto/adamant/v1/parameter_server.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/dataset/digits.h"
#include "services/common/dataset/idx.h"
#include "services/common/job/job.h"
#include "services/common/rpc/door.h"
#include "services/common/rpc/server.h"
#include "services/data_server/core/ledger.h"
#include "services/data_server/core/order.h"
#include "tests/fakes/fake_controller.h"
#include "tests/fakes/port_attack.h"

namespace adamant::data_server {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kJobUid = 7;
constexpr std::uint32_t kExamples = 500;
constexpr std::uint32_t kValidation = 100;
constexpr std::uint32_t kBatchSize = 32;

constexpr const char* kManifest = R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: example}
spec:
  model: {reference: adam-mnist}
  data:
    train: {digits: {seed: 1, examples: 500}}
    validation: {digits: {seed: 2, examples: 100}}
    seed: 5
    transformations: {normalise: {mean: 0.1, deviation: 0.5}}
)";

// Records as a parameter server keeps them; the first calls find it not ready.
class FakeRecordServer final : public v1::ParameterServer::Service {
 public:
  FakeRecordServer() : server_(rpc::StartServer({}, {this}, {}).value()) {}

  [[nodiscard]] const std::string& address() const { return server_->address(); }

  [[nodiscard]] Ledger Get() {
    MutexLock lock(mutex_);
    return ParseLedger(value_).value();
  }

 private:
  grpc::Status GetRecord(grpc::ServerContext* /*context*/,
                         const v1::GetRecordRequest* request,
                         v1::GetRecordReply* reply) override {
    EXPECT_EQ(request->job_uid(), kJobUid);
    EXPECT_EQ(request->key(), "ledger/0");
    MutexLock lock(mutex_);
    if (++calls_ <= 2) {
      reply->set_outcome(calls_ == 1 ? v1::GetRecordReply::NOT_PRIMARY
                                     : v1::GetRecordReply::NOT_READY);
      return grpc::Status::OK;
    }
    reply->set_outcome(version_ == 0 ? v1::GetRecordReply::ABSENT : v1::GetRecordReply::FOUND);
    reply->set_version(version_);
    reply->set_value(value_);
    return grpc::Status::OK;
  }

  grpc::Status PutRecord(grpc::ServerContext* /*context*/,
                         const v1::PutRecordRequest* request,
                         v1::PutRecordReply* reply) override {
    MutexLock lock(mutex_);
    if (request->expected_version() != version_) {
      reply->set_outcome(v1::PutRecordReply::VERSION_CONFLICT);
    } else {
      ++version_;
      value_ = request->value();
      if (++puts_ == 3) {
        return {grpc::StatusCode::UNAVAILABLE, "stored, but the answer is lost"};
      }
    }
    reply->set_version(version_);
    return grpc::Status::OK;
  }

  Mutex mutex_;
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;
  int puts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t version_ ABSL_GUARDED_BY(mutex_) = 0;
  std::string value_ ABSL_GUARDED_BY(mutex_);
  const std::unique_ptr<rpc::Server> server_;
};

// One worker's stream.
class WorkClient {
 public:
  struct Reply {
    v1::WorkReply header;
    std::vector<std::uint8_t> images;
  };

  // `job`: that the stream names before its hello; "": none, as workers of earlier states.
  explicit WorkClient(const std::string& address, const std::string& job = std::to_string(kJobUid))
      : stream_(rpc::OpenFrameStream(address, "/adamant.v1.DataServer/Work", 16 << 20, {}, job)) {}

  // Returns why it was refused.
  std::string SendHello(Incarnation incarnation,
                        std::uint32_t window,
                        std::uint32_t format_version = 1,
                        std::uint64_t job_uid = kJobUid) {
    v1::WorkRequest request;
    v1::WorkHello& hello = *request.mutable_hello();
    hello.set_format_version(format_version);
    hello.set_job_uid(job_uid);
    hello.set_worker_incarnation(incarnation);
    hello.set_window(window);
    Send(request);
    hello_ = Receive().header.hello();
    return hello_.refused();
  }

  // Whether the server has answered a hello, of a version that it refuses.
  bool IsAnswered() {
    v1::WorkRequest request;
    request.mutable_hello()->set_format_version(2);
    return stream_->Write({.header = request.SerializeAsString(), .payload = {}}).ok() &&
           stream_->Read().ok();
  }

  void Send(const v1::WorkRequest& request) {
    EXPECT_TRUE(stream_->Write({.header = request.SerializeAsString(), .payload = {}}).ok());
  }

  void SendResult(const v1::Lease& lease, double loss_sum = 0, std::uint64_t correct = 0) {
    v1::WorkRequest request;
    v1::LeaseResult& result = *request.mutable_acknowledge()->add_results();
    *result.mutable_lease() = lease;
    result.set_loss_sum(loss_sum);
    result.set_correct(correct);
    Send(request);
  }

  Reply Receive() {
    absl::StatusOr<rpc::IncomingFrame> frame = stream_->Read();
    EXPECT_TRUE(frame.ok()) << frame.status();
    Reply reply;
    if (frame.ok()) {
      EXPECT_TRUE(reply.header.ParseFromString(std::string(frame->header())));
      reply.images.resize(frame->payload_bytes());
      EXPECT_TRUE(
          rpc::PayloadReader(*frame).Read(std::as_writable_bytes(std::span(reply.images))).ok());
    }
    return reply;
  }

  [[nodiscard]] const v1::WorkHelloReply& hello() const { return hello_; }

 private:
  const std::unique_ptr<rpc::FrameStream> stream_;
  v1::WorkHelloReply hello_;
};

class DataServerProcessTest : public testing::Test {
 protected:
  ~DataServerProcessTest() override {
    if (pid_ > 0) {
      Signal(SIGKILL);
    }
    fs::remove_all(folder_);
  }

  static fs::path NewFolder() {
    std::string name = (fs::temp_directory_path() / "adamant-ds-XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    return name;
  }

  // Starts the program and answers its Join.
  void Spawn(const v1::TrainingJob& job, const std::vector<v1::DataFile>& known = {}) {
    controller_ = std::make_unique<fakes::FakeController>();
    std::vector<std::string> flags = {DATA_SERVER_PATH,
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
    ASSERT_EQ(posix_spawn(&pid_, DATA_SERVER_PATH, nullptr, nullptr, argv.data(), environ), 0);
    const auto join = controller_->Receive();
    ASSERT_TRUE(join.has_value() && join->has_join());
    address_ = join->join().address();
    metrics_address_ = join->join().metrics_address();
    v1::ControllerMessage message;
    v1::Welcome& welcome = *message.mutable_welcome();
    welcome.set_term(1);
    welcome.set_incarnation(++incarnation_);
    welcome.set_job_uid(kJobUid);
    welcome.set_data_root(folder_);
    *welcome.mutable_job() = job;
    welcome.mutable_data_files()->Assign(known.begin(), known.end());
    controller_->Send(message);
  }

  static v1::TrainingJob Job() {
    const job::ParseResult parsed = job::ParseJob(kManifest, "job.yaml");
    EXPECT_NE(parsed.job, nullptr);
    return *parsed.job;
  }

  // Starts the program and opens epoch 1.
  void Start() { Start(Job()); }
  void Start(const v1::TrainingJob& job) {
    Spawn(job);
    v1::ControllerMessage message;
    v1::Membership& view = *message.mutable_membership();
    v1::Member& server = *view.add_members();
    server.set_role(v1::PARAMETER_SERVER);
    server.set_address(records_.address());
    for (int bucket = 0; bucket < 4; ++bucket) {
      view.add_buckets()->set_created(true);
    }
    view.add_part_owner(0);
    controller_->Send(message);
    v1::ControllerMessage open;
    open.mutable_open_epoch()->set_epoch(1);
    controller_->Send(open);
    controller_->ReceiveHeartbeat();  // its data is loaded, workers are let in
  }

  void SendClose() {
    v1::ControllerMessage close;
    close.mutable_close_epoch()->set_epoch(1);
    controller_->Send(close);
  }

  // Trains batches until `answers` have been acknowledged; returns their indices.
  std::set<std::uint32_t> Train(WorkClient& worker, std::size_t answers) {
    std::set<std::uint32_t> counted;
    while (counted.size() < answers) {
      const WorkClient::Reply reply = worker.Receive();
      if (reply.header.has_batch()) {
        CheckBatch(reply);
        worker.SendResult(reply.header.batch().lease());
      } else if (reply.header.has_acknowledged()) {
        EXPECT_EQ(reply.header.acknowledged().duplicates_size(), 0);
        for (const v1::Lease& lease : reply.header.acknowledged().leases()) {
          EXPECT_TRUE(counted.insert(lease.index()).second);
        }
      } else if (!reply.header.has_drained()) {
        ADD_FAILURE() << reply.header.ShortDebugString();
        break;
      }
    }
    return counted;
  }

  // The images and labels are those of the batch's place in the epoch's order.
  void CheckBatch(const WorkClient::Reply& reply) {
    const v1::Batch& batch = reply.header.batch();
    const PartLayout layout(kExamples, 1, kBatchSize);
    const std::uint32_t count = layout.BatchExamples(0, batch.lease().index());
    ASSERT_EQ(static_cast<std::uint32_t>(batch.labels_size()), count);
    ASSERT_EQ(reply.images.size(), count * 784u);
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t example = order_[layout.Position(0, batch.lease().index(), i)];
      ASSERT_EQ(batch.labels(static_cast<int>(i)), train_.labels[example]);
      const auto image = train_.image(example);
      ASSERT_TRUE(
          std::equal(image.begin(), image.end(), reply.images.begin() + std::ptrdiff_t{784} * i));
    }
  }

  // Ends the process and returns its exit code, or minus the signal.
  int Signal(int signal) {
    kill(pid_, signal);
    return Await();
  }

  int Await() {
    int status = 0;
    EXPECT_EQ(waitpid(pid_, &status, 0), pid_);
    pid_ = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  const fs::path folder_ = NewFolder();
  const dataset::Dataset train_ = dataset::GenerateDigits({.seed = 1, .examples = kExamples});
  const std::vector<std::uint32_t> order_ = EpochOrder(5, 1, kExamples);
  FakeRecordServer records_;
  std::unique_ptr<fakes::FakeController> controller_;
  std::string address_;
  std::string metrics_address_;
  Incarnation incarnation_ = 0;
  pid_t pid_ = 0;
};

TEST_F(DataServerProcessTest, AWorkerOfAnEarlierStateIsLetInAndStays) {
  Start();
  WorkClient worker(address_, "");
  ASSERT_EQ(worker.SendHello(1, 2), "");
  std::this_thread::sleep_for(rpc::Door::Limits().most_time + std::chrono::seconds(1));
  EXPECT_GE(Train(worker, 3).size(), 3u);
}

TEST_F(DataServerProcessTest, DispatchesTheFirstBatchesBeforeAllDigitsAreDrawn) {
  v1::TrainingJob job = Job();
  job.mutable_spec()->mutable_data()->mutable_train()->mutable_digits()->set_examples(400'000);
  const auto begin = std::chrono::steady_clock::now();
  Start(job);
  WorkClient worker(address_);
  ASSERT_EQ(worker.SendHello(1, 4), "");
  for (int batches = 0; batches < 20; ++batches) {
    const WorkClient::Reply reply = worker.Receive();
    ASSERT_TRUE(reply.header.has_batch() || reply.header.has_acknowledged());
    if (reply.header.has_batch()) {
      worker.SendResult(reply.header.batch().lease());
    }
  }
  // Which took all cores of a large machine longer.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10));
}

TEST_F(DataServerProcessTest, DispatchesCountsClosesAndEvaluatesAnEpoch) {
  Start();
  WorkClient worker(address_);
  ASSERT_EQ(worker.SendHello(1, 4), "");
  EXPECT_FLOAT_EQ(worker.hello().mean(0), 25.5f);
  EXPECT_FLOAT_EQ(worker.hello().deviation(0), 127.5f);
  EXPECT_EQ(Train(worker, 16).size(), 16u);
  ASSERT_TRUE(controller_->Receive()->has_epoch_ended());
  EXPECT_EQ(records_.Get().counted_examples, kExamples);
  SendClose();
  const auto closed = controller_->Receive();
  ASSERT_TRUE(closed->has_part_closed());
  EXPECT_EQ(closed->part_closed().counted_examples(), kExamples);
  EXPECT_EQ(closed->part_closed().left_examples(), 0u);
  EXPECT_TRUE(records_.Get().closed);

  v1::ControllerMessage evaluate;
  evaluate.mutable_evaluate()->set_epoch(1);
  evaluate.mutable_evaluate()->set_snapshot(1);
  controller_->Send(evaluate);
  for (int batches = 0; batches < 4;) {
    const WorkClient::Reply reply = worker.Receive();
    if (reply.header.has_batch()) {
      EXPECT_EQ(reply.header.batch().lease().kind(), v1::EVALUATE);
      worker.SendResult(reply.header.batch().lease(), 1.5, 20);
      ++batches;
    }
  }
  const auto evaluated = controller_->Receive();
  ASSERT_TRUE(evaluated->has_evaluated());
  EXPECT_EQ(evaluated->evaluated().examples(), kValidation);
  EXPECT_EQ(evaluated->evaluated().correct(), 80u);
  EXPECT_EQ(evaluated->evaluated().loss_sum(), 6.0);
  EXPECT_EQ(controller_->ReceiveHeartbeat().data_server().job_examples(), kExamples);
  EXPECT_EQ(Signal(SIGTERM), 0);
}

TEST_F(DataServerProcessTest, KilledAndStartedAgainItDealsWhatIsNotCounted) {
  Start();
  std::set<std::uint32_t> counted;
  {
    WorkClient worker(address_);
    ASSERT_EQ(worker.SendHello(1, 3), "");
    counted = Train(worker, 5);
    EXPECT_EQ(Signal(SIGKILL), -SIGKILL);
  }
  const Ledger ledger = records_.Get();
  for (const std::uint32_t batch : counted) {
    EXPECT_TRUE(ledger.counted[batch]) << "what was answered is stored";
  }
  const auto stored = std::count(ledger.counted.begin(), ledger.counted.end(), true);
  Start();
  WorkClient worker(address_);
  ASSERT_EQ(worker.SendHello(1, 3), "");
  const std::set<std::uint32_t> rest = Train(worker, 16 - static_cast<std::size_t>(stored));
  for (const std::uint32_t batch : rest) {
    EXPECT_FALSE(ledger.counted[batch]);
  }
  ASSERT_TRUE(controller_->Receive()->has_epoch_ended());
  EXPECT_EQ(records_.Get().counted_examples, kExamples);
}

TEST_F(DataServerProcessTest, WorkersOfOtherVersionsAndJobsAreRefused) {
  Start();
  EXPECT_EQ(WorkClient(address_).SendHello(1, 4, 2),
            "this server speaks format version 1, the worker version 2");
  EXPECT_EQ(WorkClient(address_).SendHello(1, 4, 1, 8),
            "this server is not of the client's job, 8");
  WorkClient worker(address_);
  EXPECT_EQ(worker.SendHello(2, 4), "");
  EXPECT_EQ(WorkClient(address_).SendHello(1, 4),
            "incarnation 1 of worker 0 was replaced by incarnation 2");
}

TEST_F(DataServerProcessTest, StrangersCostLittleMemoryAndDoNotKeepWorkersOut) {
  Start();
  WorkClient worker(address_);
  ASSERT_EQ(worker.SendHello(1, 4), "");
  rlimit files{.rlim_cur = 512, .rlim_max = 512};  // fewer than the strangers' connections
  ASSERT_EQ(prlimit(pid_, RLIMIT_NOFILE, &files, nullptr), 0);
  const fakes::Damage damage = fakes::Attack(
      pid_,
      {{.address = address_,
        .methods = {"/adamant.v1.DataServer/Work", "/grpc.health.v1.Health/Check"}},
       {.address = metrics_address_, .methods = {}}},
      [this] { return WorkClient(address_).IsAnswered(); },
      std::cout);
  EXPECT_LE(damage.bytes >> 20, 64u);
  EXPECT_LE(damage.slowest.count(), 5'000);  // 1,000 where nothing else runs
  worker.SendResult(worker.Receive().header.batch().lease());
  while (!worker.Receive().header.has_acknowledged()) {  // on the stream of before
  }
}

TEST_F(DataServerProcessTest, BadDataFailsTheJobWithItsReason) {
  v1::TrainingJob job = Job();
  v1::IdxFiles& files = *job.mutable_spec()->mutable_data()->mutable_train()->mutable_idx();
  files.set_images("images");
  files.set_labels("labels");
  Spawn(job);
  const auto failure = controller_->Receive();
  ASSERT_TRUE(failure.has_value() && failure->has_failure());
  EXPECT_TRUE(failure->failure().fatal());
  EXPECT_EQ(failure->failure().message(),
            "spec.data.train.idx.images: there is no file " + (folder_ / "images").string());
  EXPECT_EQ(Await(), 1);
}

TEST_F(DataServerProcessTest, ReportsItsFilesAndRefusesOthersBeforeItLetsAnybodyIn) {
  v1::TrainingJob job = Job();
  const dataset::IdxPaths paths = dataset::MnistPaths(folder_.string(), "train");
  ASSERT_TRUE(dataset::WriteIdx(train_, paths).ok());
  v1::IdxFiles& files = *job.mutable_spec()->mutable_data()->mutable_train()->mutable_idx();
  files.set_images(paths.images);
  files.set_labels(paths.labels);
  Start(job);
  const auto known = controller_->ReceiveHeartbeat().data_server().data_files();
  ASSERT_EQ(known.size(), 2);
  EXPECT_EQ(known[0].field(), "spec.data.train.idx.images");
  EXPECT_EQ(Signal(SIGTERM), 0);

  const dataset::Dataset other = dataset::GenerateDigits({.seed = 3, .examples = kExamples});
  ASSERT_TRUE(dataset::WriteIdx(other, paths).ok());
  Spawn(job, {known.begin(), known.end()});
  const auto failure = controller_->Receive();
  ASSERT_TRUE(failure.has_value() && failure->has_failure());
  EXPECT_TRUE(failure->failure().invalid());
  EXPECT_TRUE(failure->failure().message().starts_with(
      "spec.data.train.idx.images: " + paths.images + " is not the file that the job began with"));
  EXPECT_EQ(Await(), 1);
}

}  // namespace
}  // namespace adamant::data_server
