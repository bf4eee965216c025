#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/job_controller.h"
#include "services/common/base/rng.h"

// A cluster of simple members around the real controller: messages take random time, processes die,
// streams break, the controller dies and comes back from what it stored. However the events fall,
// the job must end, epochs must follow each other with one result each, and no process may remain.
namespace adamant::controller {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kTick{50};

struct Process {
  std::uint64_t generation = 0;
  std::string uid;
  ConnectionId connection = 0;  // 0: not connected
  std::uint64_t incarnation = 0;
  Membership view;
};

// What parameter and data servers keep on disk.
struct Disk {
  std::set<std::uint32_t> created_buckets;
  std::set<std::uint64_t> snapshots;
  std::set<std::uint64_t> closed_epochs;
};

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed) : rng_(seed) {
    settings_.name = "random";
    settings_.workers = 1 + static_cast<std::uint32_t>(rng_.Below(3));
    settings_.data_servers = 1 + static_cast<std::uint32_t>(rng_.Below(3));
    settings_.parameter_servers = 1 + static_cast<std::uint32_t>(rng_.Below(3));
    settings_.buckets = 1 + static_cast<std::uint32_t>(rng_.Below(8));
    settings_.epochs = 1 + rng_.Below(4);
    settings_.restart_limit = 1000;
    settings_.restart_backoff = milliseconds(rng_.Below(500));
    settings_.checkpoint_interval = milliseconds(200 + rng_.Below(2000));
    controller_ = JobController::Create(settings_, 1);
    Run(controller_->Begin(now_));
  }

  // Runs for at most `limit` of simulated time. Faults stop after `faults_until`, so that an end
  // must come.
  void RunToEnd(milliseconds faults_until, milliseconds limit) {
    const auto start = now_;
    while (!finished_ && now_ < start + limit) {
      now_ += kTick;
      Deliver();
      if (now_ < start + faults_until && rng_.Below(20) == 0) {
        Fault();
      }
      if (controller_->NextTimer(now_) <= now_ || rng_.Below(10) == 0) {
        Run(controller_->Handle(Tick{}, now_));
      }
      if (++ticks_ % 20 == 0) {
        HeartbeatAll();
      }
    }
  }

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] const JobController& controller() const { return *controller_; }
  [[nodiscard]] std::uint64_t results() const { return last_result_; }
  [[nodiscard]] std::uint64_t epochs() const { return settings_.epochs; }
  [[nodiscard]] std::size_t processes() const { return processes_.size(); }

 private:
  // Something that happens later: events to the controller, in order per member.
  struct Later {
    Clock::TimePoint time;
    MemberId from;
    std::uint64_t generation;
    MemberMessage message;
  };

  void Run(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* persist = std::get_if<Persist>(&action)) {
        for (const Persist::Entry& entry : persist->entries) {
          if (entry.key == kStateKey) {
            stored_ = entry.value;
          } else {
            CheckResult(DecodeResult(entry.value).value());
          }
        }
      } else if (const auto* start = std::get_if<StartProcess>(&action)) {
        StartMember(*start);
      } else if (const auto* kill = std::get_if<KillProcess>(&action)) {
        if (Alive(kill->id) && processes_[kill->id].generation == kill->generation) {
          exits_.push_back({kill->id, kill->generation, "was killed"});
          processes_.erase(kill->id);
        }
      } else if (const auto* send = std::get_if<Send>(&action)) {
        OnSend(*send);
      } else if (const auto* wanted = std::get_if<Export>(&action)) {
        EXPECT_EQ(wanted->snapshot, last_snapshot_) << "exported is the evaluated model";
        exports_.push_back(wanted->snapshot);
      } else if (std::holds_alternative<Finished>(action)) {
        finished_ = true;
      }
    }
    EXPECT_EQ(DecodeState(stored_).value().epoch, controller_->state().epoch);
  }

  void CheckResult(const EpochResult& result) {
    EXPECT_EQ(result.epoch, last_result_ + 1) << "one result an epoch, in order";
    EXPECT_EQ(result.counted, 10u * settings_.data_servers) << "each part counts once";
    EXPECT_GT(result.snapshot, last_snapshot_);
    last_result_ = result.epoch;
    last_snapshot_ = result.snapshot;
  }

  void StartMember(const StartProcess& start) {
    EXPECT_FALSE(Alive(start.id)) << ToString(start.id) << " was started beside itself";
    Process process;
    process.generation = start.generation;
    process.uid = "uid-" + std::to_string(++uids_);
    processes_[start.id] = process;
    Connect(start.id);
  }

  void Connect(MemberId id) {
    Process& process = processes_[id];
    process.connection = ++connections_;
    Join join;
    join.id = id;
    join.uid = process.uid;
    join.incarnation = process.incarnation;
    Answer(id, join);
  }

  [[nodiscard]] bool Alive(MemberId id) const { return processes_.contains(id); }

  void Answer(MemberId from, MemberMessage message) {
    const auto delay = kTick * static_cast<std::int64_t>(rng_.Below(6));
    Clock::TimePoint time = now_ + delay;
    for (const Later& later : later_) {
      if (later.from == from) {
        time = std::max(time, later.time);  // streams keep the order
      }
    }
    later_.push_back({time, from, processes_[from].generation, std::move(message)});
  }

  void Deliver() {
    for (const ProcessExited& exited : std::exchange(exits_, {})) {
      Run(controller_->Handle(exited, now_));
    }
    for (const std::uint64_t snapshot : std::exchange(exports_, {})) {
      Run(controller_->Handle(Exported{snapshot, absl::OkStatus()}, now_));
    }
    std::vector<Later> due;
    std::erase_if(later_, [&](Later& later) {
      if (later.time <= now_) {
        due.push_back(std::move(later));
        return true;
      }
      return false;
    });
    for (Later& later : due) {
      if (!Alive(later.from) || processes_[later.from].generation != later.generation) {
        continue;
      }
      const Process& process = processes_[later.from];
      if (process.connection != 0) {
        Run(controller_->Handle(Received{process.connection, std::move(later.message)}, now_));
      }
    }
  }

  void OnSend(const Send& send) {
    const auto found = std::find_if(processes_.begin(), processes_.end(), [&](const auto& entry) {
      return entry.second.connection == send.connection;
    });
    if (found == processes_.end()) {
      return;
    }
    const MemberId id = found->first;
    Process& process = found->second;
    if (const auto* welcome = std::get_if<Welcome>(&send.message)) {
      std::uint64_t& last = incarnations_[id];
      EXPECT_TRUE(welcome->incarnation > last ||
                  (welcome->incarnation == last && process.incarnation == last));
      last = process.incarnation = welcome->incarnation;
    } else if (const auto* view = std::get_if<Membership>(&send.message)) {
      EXPECT_GT(view->version, process.view.version);
      process.view = *view;
      ReportBuckets(id);
    } else if (std::holds_alternative<Stop>(send.message) ||
               std::holds_alternative<Refused>(send.message)) {
      exits_.push_back({id, process.generation, "exited with code 0"});
      processes_.erase(found);
    } else {
      Obey(id, send.message);
    }
  }

  void ReportBuckets(MemberId id) {
    if (id.role != Role::kParameterServer) {
      return;
    }
    BucketsReady ready;
    Disk& disk = disks_[id];
    const Membership& view = processes_[id].view;
    for (std::uint32_t i = 0; i < view.buckets.size(); ++i) {
      if (view.buckets[i].primary == id.slot) {
        EXPECT_TRUE(!view.buckets[i].created || disk.created_buckets.contains(i));
        disk.created_buckets.insert(i);
        ready.buckets.push_back(
            {.bucket = i, .epoch = view.buckets[i].epoch, .lost = false, .detail = ""});
      }
    }
    if (!ready.buckets.empty()) {
      Answer(id, ready);
    }
  }

  void Obey(MemberId id, const ControllerMessage& message) {
    if (const auto* open = std::get_if<OpenEpoch>(&message)) {
      EXPECT_EQ(open->epoch, last_result_ + 1);
      if (processes_[id].view.part_owner.front() == id.slot) {
        Answer(id, EpochEnded{open->epoch});
      }
    } else if (const auto* close = std::get_if<CloseEpoch>(&message)) {
      const Membership& view = processes_[id].view;
      for (std::uint32_t part = 0; part < view.part_owner.size(); ++part) {
        if (view.part_owner[part] == id.slot) {
          Answer(id, PartClosed{.epoch = close->epoch, .part = part, .counted_examples = 10});
        }
      }
    } else if (const auto* flush = std::get_if<FlushWorker>(&message)) {
      Answer(id, WorkerFlushed{flush->epoch});
    } else if (const auto* take = std::get_if<TakeSnapshot>(&message)) {
      TakeOne(id, *take);
    } else if (const auto* evaluate = std::get_if<Evaluate>(&message)) {
      for (std::uint32_t slot = 0; slot < settings_.parameter_servers; ++slot) {
        const MemberId server{Role::kParameterServer, slot};
        EXPECT_TRUE(disks_[server].snapshots.contains(evaluate->snapshot));
      }
      Answer(id,
             Evaluated{.epoch = evaluate->epoch,
                       .snapshot = evaluate->snapshot,
                       .examples = 10,
                       .correct = 5,
                       .loss_sum = 1});
    }
  }

  void TakeOne(MemberId id, const TakeSnapshot& take) {
    if (rng_.Below(8) == 0) {
      return Answer(id, SnapshotTaken{.snapshot = take.snapshot, .ok = false, .error = "full"});
    }
    std::set<std::uint64_t>& snapshots = disks_[id].snapshots;
    std::erase_if(snapshots, [&](std::uint64_t snapshot) {
      return snapshot < take.keep_from &&
             std::find(take.keep.begin(), take.keep.end(), snapshot) == take.keep.end();
    });
    EXPECT_TRUE(last_snapshot_ == 0 || snapshots.contains(last_snapshot_))
        << "the evaluated model was dropped";
    snapshots.insert(take.snapshot);
    Answer(id, SnapshotTaken{.snapshot = take.snapshot, .ok = true, .error = ""});
  }

  void Fault() {
    if (processes_.empty()) {
      return;
    }
    auto victim = processes_.begin();
    std::advance(victim, static_cast<std::int64_t>(rng_.Below(processes_.size())));
    const MemberId id = victim->first;
    switch (rng_.Below(8)) {
      case 0:  // the controller dies, members live on and come back
        RestartController(/*with_members=*/false);
        return;
      case 1:  // all die
        RestartController(/*with_members=*/true);
        return;
      case 2:  // a stream breaks
      case 3: {
        Run(controller_->Handle(Disconnected{victim->second.connection}, now_));
        if (Alive(id)) {
          Connect(id);
        }
        return;
      }
      default:  // a process dies
        exits_.push_back({id, victim->second.generation, "was killed by signal 9"});
        processes_.erase(victim);
    }
  }

  void RestartController(bool with_members) {
    later_.clear();
    exits_.clear();
    exports_.clear();
    if (with_members) {
      processes_.clear();
    }
    controller_ = *JobController::Restore(settings_, stored_);
    // This body starts only what does not run, like one that lives in a cluster.
    for (Action& action : controller_->Begin(now_)) {
      if (const auto* start = std::get_if<StartProcess>(&action); start && Alive(start->id)) {
        processes_[start->id].generation = start->generation;
      } else {
        Run({std::move(action)});
      }
    }
    for (const auto& [id, process] : std::map(processes_)) {
      if (process.incarnation != 0) {
        Connect(id);
      }
    }
  }

  void HeartbeatAll() {
    for (const auto& [id, process] : std::map(processes_)) {
      if (process.incarnation != 0) {
        Answer(id, Heartbeat{});
      }
    }
  }

  Rng rng_;
  JobSettings settings_;
  std::unique_ptr<JobController> controller_;
  Clock::TimePoint now_{std::chrono::hours(1)};
  std::string stored_;
  bool finished_ = false;
  std::map<MemberId, Process> processes_;
  std::map<MemberId, Disk> disks_;
  std::map<MemberId, std::uint64_t> incarnations_;
  std::vector<Later> later_;
  std::vector<ProcessExited> exits_;
  std::vector<std::uint64_t> exports_;
  ConnectionId connections_ = 0;
  std::uint64_t uids_ = 0;
  std::uint64_t ticks_ = 0;
  std::uint64_t last_result_ = 0;
  std::uint64_t last_snapshot_ = 0;
};

TEST(RandomEventsTest, EveryJobEndsWithOneResultPerEpoch) {
  for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Cluster cluster(seed);
    cluster.RunToEnd(std::chrono::seconds(20), std::chrono::minutes(10));
    ASSERT_TRUE(cluster.finished()) << cluster.controller().state().message;
    if (cluster.controller().state().phase == Phase::kFailed) {
      // The one failure that this cluster's members can cause.
      EXPECT_NE(cluster.controller().state().message.find("cannot store snapshot"),
                std::string::npos)
          << cluster.controller().state().message;
    } else {
      EXPECT_EQ(cluster.results(), cluster.epochs());
    }
    EXPECT_EQ(cluster.processes(), 0u);
    ASSERT_FALSE(HasFailure());
  }
}

}  // namespace
}  // namespace adamant::controller
