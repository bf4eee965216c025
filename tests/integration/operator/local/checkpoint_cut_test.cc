// A checkpoint of a real job, taken while it trains, is bit for bit what a run that stopped at its
// cut has: the job's own log of pushes, played to a fresh server up to the cut, gives the same
// parameters, optimiser state, deduplication table and ledger.

#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "operator/local/run_folder/checkpoint_file.h"
#include "operator/local/state/job_data.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/model/model.h"
#include "services/common/storage/segments/segment_store.h"
#include "services/data_server/core/ledger.h"
#include "services/parameter_server/core/storage/entry_record.h"
#include "services/parameter_server/core/storage/snapshots.h"
#include "services/parameter_server/core/storage/stored_bucket.h"
#include "tests/unit/services/parameter_server/core/serving/server_rig.h"

namespace adamant::local {
namespace {

namespace fs = std::filesystem;
namespace ps = parameter_server;
using std::chrono::seconds;
using std::chrono::steady_clock;

// The log is never flushed away, so that it holds the whole run; one bucket gives it one order.
constexpr char kManifest[] = R"(apiVersion: adamant.dev/v1alpha1
kind: TrainingJob
metadata: {name: cut}
spec:
  model:
    network:
      input: [1, 28, 28]
      classes: 10
      layers:
        - {name: conv1, kind: Conv2d, channels: 32, kernel: [5, 5]}
        - {name: pool1, kind: MaxPool, kernel: [4, 4], stride: [4, 4]}
        - {name: relu1, kind: Relu}
        - {name: fc1, kind: FullyConnected, outputs: 10}
  data:
    train: {digits: {seed: 1, examples: 30000}}
    validation: {digits: {seed: 2, examples: 100}}
  optimiser: {kind: Momentum, rate: 0.005, location: Server}
  distribution:
    workers: 1
    parameterServers: {count: 1, buckets: 1, persistence: {mode: Wal, flushInterval: 1h}}
    updateProtocol: {default: Gradients}
  runPolicy: {epochs: 3, checkpointInterval: 100ms, seed: 4}
)";
constexpr BucketId kBucket = 0;
constexpr char kLedger[] = "ledger/0";
constexpr std::uint64_t kAnew = 1'000'000;  // id of the snapshots that are compared

class CheckpointCutTest : public testing::Test {
 protected:
  CheckpointCutTest() {
    fs::remove_all(root_);
    fs::create_directories(root_);
    std::ofstream(root_ / "job.yaml") << kManifest;
    job::ParseResult parsed = job::LoadJob(root_ / "job.yaml");
    for (const job::Diagnostic& problem : parsed.problems) {
      ADD_FAILURE() << job::Format(problem);
    }
    job_ = std::move(parsed.job);
  }
  ~CheckpointCutTest() override {
    if (train_ != 0) {
      Kill();
    }
    fs::remove_all(root_);
  }

  void Train() {
    std::vector<std::string> words = {
        ADAMANT_PATH, "train", (root_ / "job.yaml").string(), "--run-dir", paths_.root.string()};
    std::vector<char*> arguments;
    for (std::string& word : words) {
      arguments.push_back(word.data());
    }
    arguments.push_back(nullptr);
    ASSERT_EQ(posix_spawn(&train_, ADAMANT_PATH, nullptr, nullptr, arguments.data(), environ), 0);
  }

  // The newest checkpoint, if it was taken within an epoch and behind a push.
  [[nodiscard]] std::optional<CheckpointManifest> NewestCheckpoint() const {
    const auto manifests = ReadCheckpointManifests(paths_);
    if (!manifests.ok()) {
      return std::nullopt;
    }
    const auto& cuts = manifests->front().checkpoint.cuts;
    return cuts.empty() || cuts[0].sequence == 0 ? std::nullopt : std::optional(manifests->front());
  }

  // Whether a checkpoint within an epoch was taken before the job ended.
  [[nodiscard]] bool AwaitCheckpoint() const {
    while (!NewestCheckpoint()) {
      siginfo_t ended{};
      waitid(P_PID, static_cast<id_t>(train_), &ended, WEXITED | WNOHANG | WNOWAIT);
      if (ended.si_pid != 0) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return true;
  }

  // SIGKILL to the controller; its processes die with it.
  void Kill() {
    kill(train_, SIGKILL);
    waitpid(train_, nullptr, 0);
    train_ = 0;
  }

  std::unique_ptr<storage::SegmentStore> OpenStore() {
    for (const auto end = steady_clock::now() + seconds(20); steady_clock::now() < end;) {
      auto store = storage::SegmentStore::Open(paths_.store_of(0) / "shards");
      if (store.ok()) {
        return *std::move(store);
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "the server's process did not end";
    return nullptr;
  }

  [[nodiscard]] ps::ParameterServerOptions OptionsOf(std::uint64_t job_uid) const {
    ps::ParameterServerOptions options;
    options.job_uid = job_uid;
    options.seed = 4;
    options.parameters = model::BuildGraph(job::NetOf(*job_)).value().parameters;
    options.optimisers = job::OptimisersOf(*job_, options.parameters).value();
    return options;
  }

  const fs::path root_ = fs::temp_directory_path() / ("adamant_cut_" + std::to_string(getpid()));
  const RunPaths paths_{root_ / "run"};
  std::unique_ptr<v1::TrainingJob> job_;
  pid_t train_ = 0;
};

// A server that came back from the checkpoint as a restore does.
void RestoreFrom(const storage::KvStore& disk,
                 std::uint64_t snapshot,
                 const ps::ParameterServerOptions& options,
                 ps::ServerRig& rig) {
  std::vector<storage::Change> changes;
  ASSERT_TRUE(disk.Scan("",
                        [&](std::string_view key, std::string_view value) {
                          changes.push_back({.key = std::string(key), .value = std::string(value)});
                          return true;
                        })
                  .ok());
  ASSERT_TRUE(rig.store(0).Write(changes).ok());
  rig.Start(0, options);
  rig.RestoreAll(0, snapshot);
}

ps::Push PushOf(const ps::Entry& entry, ConfigurationVersion version) {
  ps::Push push{.writer = entry.updates[0].writer,
                .updates = {},
                .operands = {},
                .terms = {.job_examples = entry.updates[0].job_examples},
                .owner = entry.owner};
  for (const ps::LoggedUpdate& update : entry.updates) {
    push.updates.push_back({.shard = update.shard,
                            .configuration_version = version,
                            .sequence = update.sequence,
                            .kind = update.kind,
                            .values = update.values});
  }
  return push;
}

// Plays the log to a new server until a push lies behind the cut. Returns how many pushes did not.
std::uint64_t PlayUpTo(const controller::PushCut& cut,
                       const std::vector<ps::StoredEntry>& log,
                       const ps::ParameterServerOptions& options,
                       ps::ServerRig& rig) {
  rig.Start(0, options);
  rig.AssignAll(0);
  std::uint64_t pushes = 0;
  for (const ps::StoredEntry& stored : log) {
    if (!stored.entry->updates.empty()) {
      if (stored.entry->updates[0].sequence > cut.sequence) {
        break;
      }
      ++pushes;
      const auto acks = rig.Push(0, PushOf(*stored.entry, rig.map[kBucket].version));
      EXPECT_TRUE(acks && acks->front().outcome == ps::PushOutcome::kApplied);
    }
    for (const ps::LoggedPut& put : stored.entry->puts) {
      EXPECT_TRUE(rig.Put(0, put.key, put.version - 1, put.value)->stored);
    }
  }
  return pushes;
}

void ExpectSame(ps::ServerRig& left,
                ps::ServerRig& right,
                const ps::ParameterServerOptions& options) {
  const ShardLayout layout(options.parameters, 1);
  for (ps::ServerRig* rig : {&left, &right}) {
    ASSERT_TRUE(rig->server(0).TakeSnapshot({.snapshot = kAnew}).ok());
  }
  const ps::Snapshots first(options.job_uid, left.store(0));
  const ps::Snapshots second(options.job_uid, right.store(0));
  for (const Shard& shard : layout.shards()) {
    const ps::ShardIdentity identity{.job_uid = options.job_uid,
                                     .shard = shard.id,
                                     .values = shard.size(),
                                     .state = shard.size()};  // Momentum keeps one each
    const auto a = first.LoadShard(kAnew, kBucket, identity);
    const auto b = second.LoadShard(kAnew, kBucket, identity);
    ASSERT_TRUE(a.ok() && b.ok()) << a.status() << b.status();
    EXPECT_EQ(a->values, b->values) << "parameters of shard " << shard.id;
    EXPECT_EQ(a->state, b->state) << "optimiser state of shard " << shard.id;
    EXPECT_EQ(a->version, b->version);
    EXPECT_TRUE(std::ranges::equal(a->sequences.entries(), b->sequences.entries()))
        << "deduplication table of shard " << shard.id;
    EXPECT_GT(a->version, 0u);
  }
}

TEST_F(CheckpointCutTest, ACheckpointTakenWhileTrainingIsWhatARunStoppedAtItsCutHas) {
  ASSERT_NE(job_, nullptr);
  const auto examples = ExamplesOf(job_->spec().data().train());
  ASSERT_TRUE(examples.ok()) << examples.status();
  job::CountProgressInExamples(*examples, 0, *job_);
  Train();
  ASSERT_TRUE(AwaitCheckpoint()) << "no checkpoint was taken within an epoch";
  std::this_thread::sleep_for(std::chrono::milliseconds(50));  // training goes on behind the cut
  Kill();
  const auto manifest = NewestCheckpoint();  // another may have been taken since
  ASSERT_TRUE(manifest && manifest->checkpoint.cuts.size() == 1);
  const controller::PushCut cut = manifest->checkpoint.cuts[0];
  const auto disk = OpenStore();
  ASSERT_NE(disk, nullptr);
  const ps::ParameterServerOptions options = OptionsOf(manifest->job_uid);
  const auto log = ps::LoadEntries(kBucket, ShardLayout(options.parameters, 1), *disk);
  ASSERT_TRUE(log.ok()) << log.status();

  ps::ServerRig stopped(1);
  const std::uint64_t pushes = PlayUpTo(cut, *log, options, stopped);
  EXPECT_EQ(pushes, cut.sequence) << "the log holds the whole run";
  EXPECT_LT(pushes, log->size());
  ps::ServerRig restored(1);
  RestoreFrom(*disk, manifest->checkpoint.snapshot, options, restored);
  ExpectSame(restored, stopped, options);

  const ps::RecordAnswer ledger = restored.server(0).records().Get(kLedger);
  EXPECT_EQ(ledger.record.value, stopped.server(0).records().Get(kLedger).record.value);
  const auto counted = data_server::ParseLedger(ledger.record.value);
  ASSERT_TRUE(counted.ok()) << counted.status();
  EXPECT_FALSE(counted->closed) << "it was taken within the epoch";
  EXPECT_GE(counted->counted_examples, 32 * cut.sequence) << "a push is of one batch at least";
}

}  // namespace
}  // namespace adamant::local
