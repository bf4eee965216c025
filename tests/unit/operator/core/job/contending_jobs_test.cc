#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "services/common/base/rng.h"

// Jobs that fit alone, but not beside each other, and a scheduler that knows nothing of jobs.
namespace adamant::controller {
namespace {

using std::chrono::seconds;
using TimePoint = JobController::TimePoint;

constexpr int kTraining = 60;  // seconds, then it is done

JobSettings Settings() {
  return {.name = "contending",
          .workers = 1,
          .data_servers = 1,
          .parameter_servers = 4,
          .buckets = 4,
          .start_deadline = seconds(30),
          .join_timeout = std::chrono::minutes(15),
          .training_examples = 1000};
}

class Contender {
 public:
  Contender(std::uint64_t uid, TimePoint now)
      : controller_(JobController::Create(Settings(), uid)) {
    Run(controller_->Begin(now, {}));
  }

  /// A second passes.
  void Step(TimePoint now) {
    EndUnwanted(now);
    for (const auto& [process, connection] : placed_) {
      Handle(Received{connection, Heartbeat{}}, now);
    }
    ServeAll(now);
    Handle(Tick{}, now);
    const auto again = controller_->BeginsAgainAt();
    if (again && *again <= now && placed_.empty()) {
      controller_ = *JobController::Restore(Settings(), stored_);
      Run(controller_->Begin(now, {.others = false}));
    }
    trained_ += controller_->state().phase == Phase::kRunning ? 1 : 0;
    if (trained_ == kTraining) {
      placed_.clear();
    }
  }

  [[nodiscard]] std::vector<StartProcess> Pending() const {
    std::vector<StartProcess> pending;
    for (const StartProcess& process : controller_->Wanted()) {
      if (!done() && !placed_.contains(process)) {
        pending.push_back(process);
      }
    }
    return pending;
  }

  /// There is room for the process, and it joins.
  void Place(const StartProcess& process, TimePoint now) {
    const ConnectionId connection = placed_[process] = ++last_connection_;
    Join join;
    join.id = process.id;
    join.generation = process.generation;
    join.uid = std::to_string(connection);
    join.address = "address:1";
    Handle(Received{connection, join}, now);
    if (process.id.role == Role::kParameterServer) {
      Handle(Received{connection, DiskOf(process.id)}, now);
    }
  }

  [[nodiscard]] std::size_t placed() const { return placed_.size(); }
  [[nodiscard]] bool done() const { return trained_ >= kTraining; }
  [[nodiscard]] std::uint32_t restarts() const { return controller_->state().restarts; }
  [[nodiscard]] std::uint64_t starts() const { return controller_->state().starts; }

 private:
  void Handle(const Event& event, TimePoint now) { Run(controller_->Handle(event, now)); }

  void Run(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* persist = std::get_if<Persist>(&action)) {
        stored_ = persist->entries.back().value;
      }
    }
  }

  /// It has what the last process of its slot had.
  [[nodiscard]] StoredBuckets DiskOf(SlotId id) const {
    const JobState& state = controller_->state();
    const std::uint64_t last = state.slots[SlotIndex(Settings(), id)].incarnation - 1;
    StoredBuckets stored{.previous_incarnation = last, .buckets = {}};
    for (std::uint32_t i = 0; i < state.buckets.size(); ++i) {
      if (state.buckets[i].Has({.slot = id.slot, .incarnation = last})) {
        stored.buckets.push_back(
            {.bucket = i, .generation = state.buckets[i].generation, .complete = true});
      }
    }
    return stored;
  }

  void EndUnwanted(TimePoint now) {
    const std::vector<StartProcess> wanted = controller_->Wanted();
    for (auto process = placed_.begin(); process != placed_.end() && !done();) {
      if (std::ranges::find(wanted, process->first) == wanted.end()) {
        const StartProcess ended = process->first;
        process = placed_.erase(process);
        Handle(ProcessExited{.id = ended.id, .generation = ended.generation, .how = "ended"}, now);
      } else {
        ++process;
      }
    }
  }

  void ServeAll(TimePoint now) {
    for (const auto& [process, connection] : placed_) {
      BucketsReady ready;
      for (std::uint32_t i = 0; i < controller_->state().buckets.size(); ++i) {
        const Configuration& configuration = controller_->state().buckets[i];
        if (process.id.role == Role::kParameterServer &&
            configuration.primary.slot == process.id.slot) {
          ready.buckets.push_back({.bucket = i, .configuration_version = configuration.version});
        }
      }
      if (!ready.buckets.empty()) {
        Handle(Received{connection, ready}, now);
      }
    }
  }

  std::unique_ptr<JobController> controller_;
  std::string stored_;
  std::map<StartProcess, ConnectionId> placed_;
  ConnectionId last_connection_ = 0;
  int trained_ = 0;
};

// Places pending processes of all jobs, in any order, as long as there is room.
void PlaceSome(std::vector<Contender>& jobs, std::size_t room, Rng& rng, TimePoint now) {
  for (const Contender& job : jobs) {
    room -= job.placed();
  }
  for (; room > 0; --room) {
    std::vector<std::pair<Contender*, StartProcess>> pending;
    for (Contender& job : jobs) {
      for (const StartProcess& process : job.Pending()) {
        pending.emplace_back(&job, process);
      }
    }
    if (pending.empty()) {
      return;
    }
    const auto& [job, process] = pending[rng.Below(pending.size())];
    job->Place(process, now);
  }
}

TEST(ContendingJobsTest, EachSucceedsInTheEnd) {
  constexpr std::size_t kRoom = 8;  // each needs six
  int contended = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Rng rng(seed);
    TimePoint now{std::chrono::hours(1)};
    std::vector<Contender> jobs;
    for (int i = 0; i < 3; ++i) {
      jobs.emplace_back(rng(), now);
    }
    int passed = 0;
    for (; !std::ranges::all_of(jobs, &Contender::done) && passed < 3600; ++passed) {
      PlaceSome(jobs, kRoom, rng, now);
      now += seconds(1);
      for (Contender& job : jobs) {
        job.Step(now);
      }
    }
    EXPECT_LT(passed, 3600) << "seed " << seed;
    for (const Contender& job : jobs) {
      EXPECT_EQ(job.restarts(), 0u) << "to release is no loss";
      contended += job.starts() > 1 ? 1 : 0;
    }
  }
  EXPECT_GT(contended, 20);
}

}  // namespace
}  // namespace adamant::controller
