// The loop, the streams and the pipeline together, on their real threads.

#include "services/data_server/rpc/scheduler_loop.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/busy_meter.h"
#include "services/common/metrics/metrics.h"
#include "services/data_server/rpc/serve_work.h"
#include "tests/fakes/certified_stream.h"
#include "tests/fakes/in_memory_frame_stream.h"
#include "tests/unit/services/common/security/certified.h"

namespace adamant::data_server {
namespace {

constexpr std::uint32_t kExamples = 403;
constexpr std::uint32_t kWorkers = 4;
constexpr std::uint64_t kJobUid = 5;

BatchBuilder::SharedDataset MakeSet() {
  dataset::Dataset set{.channels = 1, .height = 1, .width = 3, .images = {}, .labels = {}};
  for (std::uint32_t i = 0; i < kExamples; ++i) {
    set.labels.push_back(static_cast<std::uint8_t>(i % 10));
    set.images.insert(set.images.end(), 3, static_cast<std::uint8_t>(i % 10));
  }
  return std::make_shared<const dataset::Dataset>(std::move(set));
}

// A worker that evaluates until its stream ends.
class Worker {
 public:
  Worker(WorkerId id, SchedulerLoop& loop, BatchPipeline& pipeline, const DataMetrics& metrics)
      : client_(link_.TakeClient()),
        server_([this, &loop, &pipeline, &metrics, stream = link_.TakeServer()] {
          link_.Finish(ServeWork(*stream, {.job_uid = kJobUid}, {}, loop, pipeline, metrics));
        }),
        thread_([this, id] { Work(id); }) {}

  ~Worker() {
    thread_.join();
    server_.join();
  }

  void Break() { client_->Cancel(); }

 private:
  void Write(const v1::WorkRequest& request) {
    (void)client_->Write({.header = request.SerializeAsString(), .payload = {}});
  }

  void Work(WorkerId id) {
    v1::WorkRequest hello;
    hello.mutable_hello()->set_format_version(1);
    hello.mutable_hello()->set_job_uid(kJobUid);
    hello.mutable_hello()->set_worker_slot(id.slot);
    hello.mutable_hello()->set_worker_incarnation(id.incarnation);
    hello.mutable_hello()->set_window(5);
    Write(hello);
    while (true) {
      const absl::StatusOr<rpc::IncomingFrame> frame = client_->Read();
      v1::WorkReply reply;
      if (!frame.ok() || !reply.ParseFromString(std::string(frame->header()))) {
        return;
      }
      if (reply.has_batch()) {
        EXPECT_EQ(frame->payload_bytes(), reply.batch().labels_size() * 3u);
        v1::WorkRequest request;
        v1::LeaseResult& result = *request.mutable_acknowledge()->add_results();
        *result.mutable_lease() = reply.batch().lease();
        result.set_correct(static_cast<std::uint64_t>(reply.batch().labels_size()));
        Write(request);
      }
    }
  }

  fakes::InMemoryLink link_;
  const std::unique_ptr<rpc::FrameStream> client_;
  std::thread server_;
  std::thread thread_;
};

class SchedulerLoopTest : public testing::Test {
 protected:
  void OnMessage(const protocol::MemberMessage& message) {
    ++messages_;
    MutexLock lock(mutex_);
    evaluated_.push_back(std::get<Evaluated>(message));
    changed_.NotifyAll();
  }

  Evaluated AwaitEvaluated(std::size_t count) {
    MutexLock lock(mutex_);
    while (evaluated_.size() < count) {
      changed_.Wait(mutex_);
    }
    return evaluated_[count - 1];
  }

  std::unique_ptr<Worker> NewWorker(WorkerId id) {
    return std::make_unique<Worker>(id, loop_, pipeline_, metrics_);
  }

  std::atomic<int> messages_ = 0;  // begun
  Mutex mutex_;
  CondVar changed_;
  std::vector<Evaluated> evaluated_ ABSL_GUARDED_BY(mutex_);

  metrics::Registry registry_;
  const DataMetrics metrics_{registry_};
  const BatchBuilder builder_{{.batch_size = 4}, MakeSet(), MakeSet()};
  BatchPipeline pipeline_{
      {.threads = 2, .cache_bytes = 200, .train_examples = kExamples}, builder_, metrics_};
  SchedulerLoop loop_{{.scheduler = {.batch_size = 4,
                                     .train_examples = kExamples,
                                     .validation_examples = kExamples,
                                     .most_frequent = 3},
                       .normalisation = {.mean = {0}, .deviation = {1}},
                       .job = {.job_uid = kJobUid}},
                      {.send = [this](const protocol::MemberMessage& m) { OnMessage(m); },
                       .fail = [](const absl::Status& status) { ADD_FAILURE() << status; }},
                      pipeline_,
                      metrics_};
};

TEST_F(SchedulerLoopTest, ManyWorkersEvaluateEveryExampleOnceThoughSomeStreamsBreak) {
  std::vector<std::unique_ptr<Worker>> workers;
  for (std::uint32_t slot = 0; slot < kWorkers; ++slot) {
    workers.push_back(NewWorker({.slot = slot, .incarnation = 1}));
  }
  for (DataEpoch epoch = 1; epoch <= 12; ++epoch) {
    loop_.Post(Evaluate{.epoch = epoch, .snapshot = epoch});
    // A worker dies, and the next process takes its slot.
    const auto slot = static_cast<std::uint32_t>(epoch % kWorkers);
    workers[slot]->Break();
    workers[slot] = NewWorker({.slot = slot, .incarnation = 1 + epoch});
    const Evaluated evaluated = AwaitEvaluated(epoch);
    EXPECT_EQ(evaluated.epoch, epoch);
    EXPECT_EQ(evaluated.correct, kExamples);
    EXPECT_EQ(evaluated.most_frequent, 3u);
  }
  loop_.Stop();
}

TEST_F(SchedulerLoopTest, StopEndsEveryStreamAndLaterOnes) {
  std::vector<std::unique_ptr<Worker>> workers;
  workers.push_back(NewWorker({.slot = 0, .incarnation = 1}));
  loop_.Post(Evaluate{.epoch = 1, .snapshot = 1});
  EXPECT_EQ(AwaitEvaluated(1).examples, kExamples);
  loop_.Stop();
  workers.push_back(NewWorker({.slot = 1, .incarnation = 1}));
}

TEST_F(SchedulerLoopTest, AWorkerIsTheOneOfItsCertificate) {
  security::PeerIdentity peer = security::As(security::Role::kWorker, 3);
  service::MemberGenerations members;
  members.Set(
      {.role = peer.role, .slot = peer.slot, .incarnation = 2, .generation = peer.generation});
  const auto greet = [&](std::uint32_t slot, Incarnation incarnation) {
    fakes::InMemoryLink link;
    const auto client = link.TakeClient();
    fakes::CertifiedStream stream(link.TakeServer(), peer);
    v1::WorkRequest hello;
    hello.mutable_hello()->set_format_version(1);
    hello.mutable_hello()->set_job_uid(kJobUid);
    hello.mutable_hello()->set_worker_slot(slot);
    hello.mutable_hello()->set_worker_incarnation(incarnation);
    EXPECT_TRUE(client->Write({.header = hello.SerializeAsString(), .payload = {}}).ok());
    client->CloseWrites();
    return ServeWork(stream, {.job_uid = kJobUid}, members, loop_, pipeline_, metrics_);
  };
  EXPECT_TRUE(greet(3, 2).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(greet(2, 2)));
  EXPECT_TRUE(absl::IsUnavailable(greet(3, 3)));
  --peer.generation;  // its predecessor, which lives
  EXPECT_TRUE(absl::IsPermissionDenied(greet(3, 2)));
}

TEST_F(SchedulerLoopTest, ALoopThatIsHeldUpIsBusy) {
  using std::chrono::seconds;
  BusyMeter meter;
  Clock::TimePoint now{seconds(1)};
  const auto busy = [&] { return meter.Look(std::vector{loop_.turns()}, now += seconds(1)); };
  const std::unique_ptr<Worker> worker = NewWorker({.slot = 0, .incarnation = 1});
  {
    MutexLock lock(mutex_);  // what the loop sends next holds it up
    loop_.Post(Evaluate{.epoch = 1, .snapshot = 1});
    while (messages_ == 0) {
      std::this_thread::yield();
    }
    busy();
    EXPECT_EQ(busy(), seconds(1));
    EXPECT_EQ(busy(), seconds(2));
  }
  AwaitEvaluated(1);
  while (busy() > seconds(0)) {
    std::this_thread::yield();
  }
  loop_.Stop();
}

}  // namespace
}  // namespace adamant::data_server
