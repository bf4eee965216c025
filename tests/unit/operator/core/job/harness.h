#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

inline constexpr SlotId kData0{Role::kDataServer, 0};
inline constexpr SlotId kData1{Role::kDataServer, 1};
inline constexpr SlotId kServer0{Role::kParameterServer, 0};
inline constexpr SlotId kServer1{Role::kParameterServer, 1};
inline constexpr SlotId kWorker0{Role::kWorker, 0};
inline constexpr SlotId kWorker1{Role::kWorker, 1};

inline constexpr std::uint64_t kExamples = 1000;  // of an epoch

inline JobSettings SmallJob() {
  return {.name = "test",
          .workers = 2,
          .data_servers = 2,
          .parameter_servers = 2,
          .buckets = 4,
          .epochs = 2,
          .target_accuracy = std::nullopt,
          .active_deadline = std::nullopt,
          .epoch_deadline = std::nullopt,
          .training_examples = kExamples};
}

/// Drives a JobController by hand: every call returns the actions it caused.
class Harness {
 public:
  using Actions = std::vector<Action>;

  explicit Harness(JobSettings settings = SmallJob())
      : settings_(std::move(settings)), controller_(JobController::Create(settings_, 42)) {}

  Actions Begin(const JobController::Survivors& survivors = {}) {
    return Keep(controller_->Begin(now_, survivors));
  }

  /// The controller's process dies and another takes over what was stored.
  Actions RestartController(const JobController::Survivors& survivors = {}) {
    auto restored = JobController::Restore(settings_, stored_state_);
    EXPECT_TRUE(restored.ok()) << restored.status();
    controller_ = *std::move(restored);
    return Begin(survivors);
  }

  /// The same, by a user who knows that the data may be other data.
  Actions RestartWithOtherData() {
    controller_ = JobController::Restore(settings_, stored_state_).value();
    controller_->AcceptOtherDataFiles();
    return Begin();
  }

  /// A controller begins with this state as what was stored, and no process lives.
  Actions BeginWith(const JobState& state) {
    stored_state_ = Encode(state);
    return RestartController({.others = false});
  }

  Actions Handle(const Event& event, bool more = false) {
    return Keep(controller_->Handle(event, now_, more));
  }
  Actions Tell(SlotId id, MemberMessage message) {
    return Handle(Received{connections_[id], std::move(message)});
  }
  Actions Join(SlotId id, const std::string& uid, Incarnation incarnation = 0) {
    connections_[id] = ++last_connection_;
    controller::Join join;
    join.id = id;
    join.uid = uid;
    join.address = ToString(id) + ":1";
    join.incarnation = incarnation;
    join.generation = SlotIndex(settings_, id) < state().slots.size() ? GenerationOf(id) : 1;
    return Tell(id, join);
  }
  Actions Exit(SlotId id, const std::string& how = "was killed by signal 9") {
    return Handle(ProcessExited{.id = id, .generation = GenerationOf(id), .how = how});
  }
  /// The user changes the job.
  Actions Change(const JobSettings& settings) {
    settings_ = settings;
    return Handle(SpecChanged{settings_});
  }
  /// The user wants another number of workers.
  Actions Scale(std::uint32_t workers) {
    settings_.workers = workers;
    return Handle(SpecChanged{settings_});
  }
  /// The controller's process stands still.
  void Sleep(std::chrono::milliseconds time) { now_ += time; }
  /// Time passes; all members but `silent` send heartbeats now and then.
  Actions Pass(std::chrono::milliseconds time, const std::vector<SlotId>& silent = {}) {
    Actions all;
    for (const auto end = now_ + time; now_ < end;) {
      const auto timer =
          std::max(controller_->NextTimer(now_), now_ + std::chrono::milliseconds(1));
      now_ = std::min({now_ + std::chrono::seconds(1), end, timer});
      for (const auto& [id, connection] : connections_) {
        if (std::find(silent.begin(), silent.end(), id) == silent.end()) {
          Append(all, Tell(id, Heartbeat{}));
        }
      }
      Append(all, Handle(Tick{}));
    }
    return all;
  }

  [[nodiscard]] ServerId ServerIdOf(std::uint32_t server) const {
    return {.slot = server,
            .incarnation =
                state().slots[SlotIndex(settings_, {Role::kParameterServer, server})].incarnation};
  }

  /// The server has opened the folder of its predecessor and found that one's buckets complete.
  Actions ReportDisk(std::uint32_t server, std::uint64_t updates = 0) {
    StoredBuckets stored{.previous_incarnation = ServerIdOf(server).incarnation - 1, .buckets = {}};
    for (std::uint32_t i = 0; i < state().buckets.size(); ++i) {
      const Configuration& configuration = state().buckets[i];
      if (configuration.Has({.slot = server, .incarnation = stored.previous_incarnation})) {
        stored.buckets.push_back({.bucket = i,
                                  .generation = configuration.generation,
                                  .updates = updates,
                                  .complete = true});
      }
    }
    return Tell({Role::kParameterServer, server}, stored);
  }

  /// The server serves the buckets that it is primary of. `more`: of JobController::Handle.
  Actions Serve(std::uint32_t server, std::uint64_t updates = 0, bool more = false) {
    BucketsReady report;
    for (std::uint32_t i = 0; i < state().buckets.size(); ++i) {
      if (state().buckets[i].primary == ServerIdOf(server)) {
        report.buckets.push_back(
            {.bucket = i, .configuration_version = state().buckets[i].version, .updates = updates});
      }
    }
    return Handle(Received{connections_[{Role::kParameterServer, server}], std::move(report)},
                  more);
  }

  /// Another process takes a server's slot and serves what it finds on its disk.
  Actions ReplaceServer(std::uint32_t server, const std::string& uid) {
    Actions all = Join({Role::kParameterServer, server}, uid);
    Append(all, ReportDisk(server));
    Append(all, Serve(server));
    return all;
  }

  Actions JoinAll(const std::string& suffix = "") {
    Actions all;
    for (std::size_t i = 0; i < controller_->state().slots.size(); ++i) {
      const SlotId id = SlotAt(settings_, i);
      Append(all, Join(id, ToString(id) + suffix));
      Append(all, Tell(id, Heartbeat{}));
    }
    for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
      Append(all, ReportDisk(server));
    }
    for (std::uint32_t server = 0; server < settings_.parameter_servers; ++server) {
      Append(all, Serve(server));
    }
    return all;
  }

  // The answers of one epoch, step by step.
  Actions ClosePart(std::uint32_t part) {
    return Tell(kData0,
                PartClosed{.epoch = state().epoch,
                           .part = part,
                           .counted_examples = 45,
                           .left_examples = 5,
                           .retrained_examples = 1});
  }
  Actions CloseParts() {
    Actions all;
    for (std::uint32_t part = 0; part < settings_.data_servers; ++part) {
      Append(all, ClosePart(part));
    }
    return all;
  }
  Actions Flush(SlotId worker) { return Tell(worker, WorkerFlushed{state().epoch}); }
  /// `updates`: of each bucket, as of the snapshot.
  Actions StoreSnapshot(SlotId server, std::uint64_t snapshot, std::uint64_t updates = 0) {
    SnapshotTaken taken{.snapshot = snapshot, .ok = true, .error = "", .buckets = {}};
    for (std::uint32_t i = 0; i < state().buckets.size(); ++i) {
      const Configuration& configuration = state().buckets[i];
      if (configuration.primary.slot == server.slot) {
        taken.buckets.push_back({.bucket = i,
                                 .configuration_version = configuration.version,
                                 .generation = configuration.generation,
                                 .updates = updates});
      }
    }
    return Tell(server, taken);
  }
  Actions EvaluateAs(std::uint64_t correct) {
    return Tell(kData0,
                Evaluated{.epoch = state().epoch,
                          .snapshot = state().row.snapshot,
                          .examples = 100,
                          .correct = correct,
                          .loss_sum = 25});
  }
  void TrainOnly() {
    Tell(kData0, EpochEnded{state().epoch});
    CloseParts();
    Flush(kWorker0);
    Flush(kWorker1);
    StoreSnapshot(kServer0, state().row.snapshot);
    StoreSnapshot(kServer1, state().row.snapshot);
  }
  Actions TrainAndEvaluate(std::uint64_t correct) {
    TrainOnly();
    return EvaluateAs(correct);
  }

  [[nodiscard]] const JobState& state() const { return controller_->state(); }
  [[nodiscard]] const JobController& controller() const { return *controller_; }
  [[nodiscard]] std::uint64_t GenerationOf(SlotId id) const {
    return state().slots[SlotIndex(settings_, id)].generation;
  }
  [[nodiscard]] Clock::TimePoint now() const { return now_; }
  [[nodiscard]] ConnectionId ConnectionOf(SlotId id) { return connections_[id]; }
  [[nodiscard]] const std::vector<EpochResult>& results() const { return results_; }

  static void Append(Actions& all, Actions more) {
    std::move(more.begin(), more.end(), std::back_inserter(all));
  }

 private:
  Actions Keep(Actions actions) {
    for (std::size_t i = 0; i < actions.size(); ++i) {
      if (const auto* persist = std::get_if<Persist>(&actions[i])) {
        EXPECT_EQ(i, 0u) << "what is stored must be stored before anything else happens";
        for (const Persist::Entry& entry : persist->entries) {
          if (entry.key == kStateKey) {
            stored_state_ = entry.value;
          } else {
            results_.push_back(DecodeResult(entry.value).value());
          }
        }
      }
    }
    return actions;
  }

  JobSettings settings_;
  std::unique_ptr<JobController> controller_;
  Clock::TimePoint now_{std::chrono::hours(1)};
  std::map<SlotId, ConnectionId> connections_;
  ConnectionId last_connection_ = 0;
  std::string stored_state_;
  std::vector<EpochResult> results_;
};

/// The actions of one type.
template <class T>
std::vector<T> Pick(const std::vector<Action>& actions) {
  std::vector<T> picked;
  for (const Action& action : actions) {
    if (const T* value = std::get_if<T>(&action)) {
      picked.push_back(*value);
    }
  }
  return picked;
}

/// The messages of one type, with the connections they go to.
template <class T>
std::vector<std::pair<ConnectionId, T>> Sent(const std::vector<Action>& actions) {
  std::vector<std::pair<ConnectionId, T>> sent;
  for (const Send& send : Pick<Send>(actions)) {
    if (const T* message = std::get_if<T>(&send.message)) {
      sent.emplace_back(send.connection, *message);
    }
  }
  return sent;
}

}  // namespace adamant::controller
