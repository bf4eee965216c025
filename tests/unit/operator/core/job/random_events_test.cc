#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "services/common/base/rng.h"
#include "tests/unit/operator/core/job/server_model.h"

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
  Incarnation incarnation = 0;
  Membership view;
  std::shared_ptr<ServerModel> server;  // parameter servers, once welcome
};

class Cluster {
 public:
  explicit Cluster(std::uint64_t seed) : rng_(seed) {
    settings_.name = "random";
    settings_.workers = 1 + static_cast<std::uint32_t>(rng_.Below(3));
    settings_.data_servers = 1 + static_cast<std::uint32_t>(rng_.Below(3));
    settings_.parameter_servers = 1 + static_cast<std::uint32_t>(rng_.Below(4));
    settings_.copies =
        1 + static_cast<std::uint32_t>(rng_.Below(std::min(settings_.parameter_servers, 3u)));
    settings_.min_in_sync = settings_.copies == 3 ? 2 : 1;
    settings_.buckets = 1 + static_cast<std::uint32_t>(rng_.Below(8));
    settings_.epochs = 1 + rng_.Below(4);
    settings_.restart_limit = 1000;
    settings_.training_examples = 1;  // known
    settings_.restart_backoff = milliseconds(rng_.Below(500));
    settings_.checkpoint_interval = milliseconds(200 + rng_.Below(2000));
    if (seed % 3 == 0) {
      settings_.on_divergence = {.action = OnDivergence::Action::kRecover, .times = 1000};
    }
    controller_ = JobController::Create(settings_, 1);
    Run(controller_->Begin(now_, {}));
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
      if (now_ < start + faults_until && goes_back() && rng_.Below(150) == 0) {
        Diverge();
      }
      if (controller_->state().recovery.going_back && rng_.Below(150) == 0) {
        LoseSnapshots();
      }
      if (controller_->NextTimer(now_) <= now_ || rng_.Below(10) == 0) {
        Run(controller_->Handle(Tick{}, now_));
      }
      if (++ticks_ % 20 == 0) {
        HeartbeatAll();
      }
      if (ticks_ % 10 == 0) {
        ProposeAll();
      }
    }
  }

  [[nodiscard]] bool finished() const { return finished_; }
  [[nodiscard]] const JobController& controller() const { return *controller_; }
  [[nodiscard]] std::uint64_t results() const { return last_result_; }
  [[nodiscard]] std::uint64_t epochs() const { return settings_.epochs; }
  [[nodiscard]] bool went_back() const { return went_back_; }
  [[nodiscard]] bool fell_back() const { return fell_back_; }
  [[nodiscard]] std::size_t processes() const { return processes_.size(); }

 private:
  [[nodiscard]] bool goes_back() const {
    return settings_.on_divergence.action == OnDivergence::Action::kRecover;
  }

  // Something that happens later: events to the controller, in order per member.
  struct Later {
    Clock::TimePoint time;
    SlotId from;
    std::uint64_t generation;
    MemberMessage message;
  };

  void Run(const std::vector<Action>& actions) {
    for (const Action& action : actions) {
      if (const auto* persist = std::get_if<Persist>(&action)) {
        Store(*persist);
      } else if (const auto* start = std::get_if<StartProcess>(&action)) {
        StartMember(*start);
      } else if (const auto* kill = std::get_if<KillProcess>(&action)) {
        if (Alive(kill->id) && processes_[kill->id].generation == kill->generation) {
          End(kill->id, "was killed");
        }
      } else if (const auto* send = std::get_if<Send>(&action)) {
        OnSend(*send);
      } else if (const auto* wanted = std::get_if<Export>(&action)) {
        EXPECT_EQ(wanted->snapshot, last_snapshot_) << "exported is the evaluated model";
        EXPECT_TRUE(controller_->state().step != Step::kExporting || IsStored(last_snapshot_));
        exports_.push_back(wanted->snapshot);
      } else if (std::holds_alternative<Finished>(action)) {
        finished_ = true;
      }
    }
    EXPECT_EQ(DecodeState(stored_).value().epoch, controller_->state().epoch);
  }

  void Store(const Persist& persist) {
    for (const Persist::Entry& entry : persist.entries) {
      if (entry.key != kStateKey) {
        CheckResult(DecodeResult(entry.value).value());
        continue;
      }
      stored_ = entry.value;
      const JobState state = DecodeState(stored_).value();
      CheckRecords(state);
      const bool back = std::exchange(attempt_, state.recovery.attempt) != state.recovery.attempt;
      const bool further_back = !back && state.epoch <= last_result_ && state.recovery.going_back;
      if (back || further_back) {
        last_result_ = state.epoch - 1;
        last_snapshot_ = state.evaluated_snapshot;
        went_back_ = true;
        fell_back_ = fell_back_ || further_back;
      }
    }
  }

  void CheckRecords(const JobState& state) {
    records_.Check(state.buckets, state.dead, [&](ServerId server_id) { return Lives(server_id); });
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

  void Connect(SlotId id) {
    Process& process = processes_[id];
    process.connection = ++connections_;
    Join join;
    join.id = id;
    join.uid = process.uid;
    join.incarnation = process.incarnation;
    join.generation = process.generation;
    Answer(id, join);
  }

  [[nodiscard]] bool Alive(SlotId id) const { return processes_.contains(id); }

  // Whether this very process of a parameter server runs.
  [[nodiscard]] bool Lives(ServerId server_id) const {
    const auto found = processes_.find({Role::kParameterServer, server_id.slot});
    return found != processes_.end() && found->second.incarnation == server_id.incarnation;
  }

  // The process ends; the controller hears of it some time.
  void End(SlotId id, const std::string& how) {
    const auto delay = rng_.Below(4) == 0 ? milliseconds(rng_.Below(8000)) : milliseconds(0);
    exits_.push_back({now_ + delay, {id, processes_[id].generation, how}});
    if (id.role == Role::kParameterServer) {
      ended_.insert_or_assign({id.slot, processes_[id].incarnation}, now_);
    }
    processes_.erase(id);
  }

  // Every bucket's primary has stored it in this snapshot.
  [[nodiscard]] bool IsStored(std::uint64_t snapshot) {
    const std::vector<Configuration>& configurations = controller_->state().buckets;
    for (std::uint32_t i = 0; i < configurations.size(); ++i) {
      if (!disks_[configurations[i].primary.slot].snapshots[snapshot].contains(i)) {
        return false;
      }
    }
    return true;
  }

  void Answer(SlotId from, MemberMessage message) {
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
    std::vector<ProcessExited> exited;
    std::erase_if(exits_, [&](const auto& exit) {
      if (exit.first <= now_) {
        exited.push_back(exit.second);
      }
      return exit.first <= now_;
    });
    for (const ProcessExited& exit : exited) {
      Run(controller_->Handle(exit, now_));
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
    const SlotId id = found->first;
    Process& process = found->second;
    if (const auto* welcome = std::get_if<Welcome>(&send.message)) {
      std::uint64_t& last = incarnations_[id];
      EXPECT_TRUE(welcome->incarnation > last ||
                  (welcome->incarnation == last && process.incarnation == last));
      last = process.incarnation = welcome->incarnation;
      GreetServer(id);
    } else if (const auto* view = std::get_if<Membership>(&send.message)) {
      EXPECT_GE(view->version, process.view.version);
      process.view = *view;
      if (process.server) {
        Answer(id, process.server->OnMembership(*view));
        Propose(id);
      }
    } else if (std::holds_alternative<Stop>(send.message) ||
               std::holds_alternative<Refused>(send.message)) {
      End(id, "exited with code 0");
    } else {
      Obey(id, send.message);
    }
  }

  // A parameter server tells a controller that is new to it what its disk held.
  void GreetServer(SlotId id) {
    if (id.role == Role::kParameterServer) {
      Process& process = processes_[id];
      if (!process.server) {
        process.server =
            std::make_shared<ServerModel>(ServerId{id.slot, process.incarnation}, disks_[id.slot]);
      }
      Answer(id, process.server->Stored());
    }
  }

  void Propose(SlotId id) {
    Process& process = processes_[id];
    const auto silent = [&](const ServerId& server_id) {
      const auto ended = ended_.find(server_id);
      return ended != ended_.end() && now_ >= ended->second + milliseconds(4000);
    };
    const auto copy = [&](BucketId bucket, const ServerId& learner) {
      if (!Lives(learner) || !processes_[{Role::kParameterServer, learner.slot}].server) {
        return false;
      }
      processes_[{Role::kParameterServer, learner.slot}].server->Receive(bucket);
      return true;
    };
    Proposals proposals = process.server->Propose(silent, copy);
    if (!proposals.proposals.empty()) {
      Answer(id, std::move(proposals));
    }
  }

  void ProposeAll() {
    for (const auto& [id, process] : std::map(processes_)) {
      if (process.server) {
        Propose(id);
      }
    }
  }

  void Obey(SlotId id, const ControllerMessage& message) {
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
    } else if (const auto* pause = std::get_if<PausePushes>(&message)) {
      Answer(id, PushesPaused{.checkpoint = pause->checkpoint});
    } else if (const auto* take = std::get_if<TakeSnapshot>(&message)) {
      TakeOne(id, *take);
    } else if (const auto* evaluate = std::get_if<Evaluate>(&message)) {
      Answer(id,
             Evaluated{.epoch = evaluate->epoch,
                       .snapshot = evaluate->snapshot,
                       .examples = 10,
                       .correct = 5,
                       .loss_sum = 1});
    }
  }

  void TakeOne(SlotId id, const TakeSnapshot& take) {
    if (rng_.Below(8) == 0) {
      SnapshotTaken failed{.snapshot = take.snapshot, .ok = false, .error = "not now"};
      failed.disk_full = rng_.Below(2) == 0;
      return Answer(id, failed);
    }
    EXPECT_TRUE(last_snapshot_ == 0 || take.snapshot == last_snapshot_ ||
                std::find(take.keep.begin(), take.keep.end(), last_snapshot_) != take.keep.end())
        << "the evaluated model was dropped";
    if (processes_[id].server) {
      Answer(id, processes_[id].server->Take(take));
    }
  }

  void Fault() {
    if (processes_.empty()) {
      return;
    }
    auto victim = processes_.begin();
    std::advance(victim, static_cast<std::int64_t>(rng_.Below(processes_.size())));
    const SlotId id = victim->first;
    switch (rng_.Below(9)) {
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
      case 4:  // the user wants another number of workers
        settings_.workers = 1 + static_cast<std::uint32_t>(rng_.Below(4));
        Run(controller_->Handle(SpecChanged{settings_}, now_));
        return;
      default:  // a process dies
        End(id, "was killed by signal 9");
    }
  }

  void RestartController(bool with_members) {
    later_.clear();
    exports_.clear();
    if (with_members) {
      while (!processes_.empty()) {
        End(processes_.begin()->first, "was killed with the group");
      }
    }
    exits_.clear();
    controller_ = *JobController::Restore(settings_, stored_);
    // This reconciler starts only what does not run, like one that lives in a cluster.
    for (Action& action : controller_->Begin(now_, {})) {
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

  void Diverge() {
    for (const auto& [id, process] : processes_) {
      if (id.role == Role::kWorker && process.incarnation != 0) {
        return Answer(id, Failure{.message = "diverged", .fatal = true, .diverged = true});
      }
    }
  }

  // A server's volume is replaced before the job has gone back to what it holds.
  void LoseSnapshots() {
    ServerDisk& disk = disks_[static_cast<std::uint32_t>(rng_.Below(settings_.parameter_servers))];
    disk.snapshots.clear();
    disk.lost_snapshots = true;
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
  std::map<SlotId, Process> processes_;
  std::map<std::uint32_t, ServerDisk> disks_;   // by slot
  std::map<ServerId, Clock::TimePoint> ended_;  // when processes of parameter servers ended
  RecordChecker records_;
  std::map<SlotId, std::uint64_t> incarnations_;
  std::vector<Later> later_;
  std::vector<std::pair<Clock::TimePoint, ProcessExited>> exits_;
  std::vector<std::uint64_t> exports_;
  ConnectionId connections_ = 0;
  std::uint64_t uids_ = 0;
  std::uint64_t ticks_ = 0;
  std::uint64_t last_result_ = 0;
  std::uint64_t attempt_ = 1;
  bool went_back_ = false;
  bool fell_back_ = false;  // to a model from before the one that it went back to
  std::uint64_t last_snapshot_ = 0;
};

TEST(RandomEventsTest, EveryJobEndsWithOneResultPerEpoch) {
  int went_back = 0;
  int fell_back = 0;
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
    went_back += cluster.went_back() ? 1 : 0;
    fell_back += cluster.fell_back() ? 1 : 0;
  }
  EXPECT_GT(went_back, 100);
  EXPECT_GT(fell_back, 20);
}

}  // namespace
}  // namespace adamant::controller
