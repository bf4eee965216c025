#include "operator/core/training/checkpoint_taker.h"

#include <algorithm>
#include <utility>

#include "services/common/base/failpoint.h"

namespace adamant::controller {

void CheckpointTaker::Open(TimePoint now) {
  next_ = requested_ ? now : now + settings_.checkpoint_interval;
  if (state_.last_snapshot != 0) {
    processes_.SendToAll(Role::kWorker, ResumePushes{state_.last_snapshot});
  }
}

void CheckpointTaker::Request(TimePoint now) {
  requested_ = true;
  if (next_) {
    next_ = now;
  }
}

void CheckpointTaker::Close() {
  if (attempt_) {
    snapshots_.Drop();
    Resume();
  }
  next_.reset();
}

void CheckpointTaker::OnIntervalChanged(std::chrono::milliseconds before) {
  if (next_ && !requested_) {
    *next_ += settings_.checkpoint_interval - before;
  }
}

std::uint64_t CheckpointTaker::IncarnationOf(std::uint32_t worker) const {
  return processes_.IncarnationOf({Role::kWorker, worker});
}

void CheckpointTaker::Begin(TimePoint now) {
  ADAMANT_FAILPOINT("checkpoint/pause");
  next_ = now + settings_.checkpoint_interval;
  attempt_ = Attempt{.snapshot = ++state_.last_snapshot,
                     .requested = std::exchange(requested_, false),
                     .since = now,
                     .deadline = now + kPauseTime,
                     .waiting = {},
                     .cuts = {},
                     .generations = configurations_.Generations()};
  outbox_.StateChanged();
  for (const ProcessTable::Slot& slot : processes_.slots()) {
    if (slot.id.role != Role::kWorker || !processes_.MayPush(slot)) {
      continue;
    }
    if (slot.liveness != ProcessTable::Liveness::kRunning) {
      return GiveUp(ToString(slot.id) + " has not come back");
    }
    attempt_->waiting.emplace(slot.id.slot, IncarnationOf(slot.id.slot));
    processes_.SendTo(slot.id, PausePushes{attempt_->snapshot});
  }
  if (attempt_->waiting.empty()) {
    GiveUp("there is no worker");
  }
}

void CheckpointTaker::OnWorkerJoined(std::uint32_t worker) {
  const SlotId id{Role::kWorker, worker};
  if (!attempt_) {
    if (state_.last_snapshot != 0) {
      processes_.SendTo(id, ResumePushes{state_.last_snapshot});
    }
    return;
  }
  const Incarnation incarnation = IncarnationOf(worker);
  const auto waiting = attempt_->waiting.find(worker);
  const bool known =
      waiting != attempt_->waiting.end()
          ? waiting->second == incarnation
          : std::any_of(attempt_->cuts.begin(), attempt_->cuts.end(), [&](const PushCut& cut) {
              return cut.worker == worker && cut.incarnation == incarnation;
            });
  if (known) {
    processes_.SendTo(id, PausePushes{attempt_->snapshot});
  } else {
    GiveUp(ToString(id) + " has joined");
  }
}

void CheckpointTaker::OnWorkerLost(std::uint32_t worker) {
  if (attempt_) {
    GiveUp(ToString(SlotId{Role::kWorker, worker}) + " is lost");
  }
}

void CheckpointTaker::OnPushesPaused(std::uint32_t worker,
                                     const PushesPaused& message,
                                     TimePoint now) {
  if (!attempt_ || message.checkpoint != attempt_->snapshot ||
      attempt_->waiting.erase(worker) == 0) {
    return;
  }
  attempt_->cuts.push_back(
      {.worker = worker, .incarnation = IncarnationOf(worker), .sequence = message.sequence});
  if (attempt_->waiting.empty()) {
    attempt_->deadline = now + kStoreTime;
    ADAMANT_FAILPOINT("checkpoint/take");
    snapshots_.Take(attempt_->snapshot, attempt_->cuts);
  }
}

void CheckpointTaker::OnConfigurationsChanged() {
  if (attempt_ && attempt_->generations != configurations_.Generations()) {
    GiveUp("a bucket has lost all its replicas");
  }
}

void CheckpointTaker::OnStored(TimePoint now) {
  if (!attempt_) {
    return;
  }
  const auto paused = std::chrono::duration_cast<std::chrono::milliseconds>(now - attempt_->since);
  state_.checkpoint.held = paused;
  outbox_.Tell(Note::Kind::kCheckpoint,
               state_.epoch,
               "checkpoint " + std::to_string(attempt_->snapshot) + ", pushes held for " +
                   std::to_string(paused.count()) + " ms");
  snapshots_.Drop();
  Rest(now);
  Resume();
}

// Workers that only ever pause would not train.
void CheckpointTaker::Rest(TimePoint now) {
  if (!requested_) {
    next_ = std::max(*next_, now + (now - attempt_->since));
  }
}

void CheckpointTaker::GiveUp(const std::string& why) {
  if (!attempt_) {
    return;
  }
  outbox_.Tell(Note::Kind::kCheckpoint,
               state_.epoch,
               "checkpoint " + std::to_string(attempt_->snapshot) + " is given up: " + why);
  if (attempt_->requested) {
    requested_ = true;
    next_ = attempt_->since + kRetry;
  }
  snapshots_.Drop();
  Resume();
}

void CheckpointTaker::Resume() {
  processes_.SendToAll(Role::kWorker, ResumePushes{attempt_->snapshot});
  attempt_.reset();
}

void CheckpointTaker::OnTimer(TimePoint now) {
  if (attempt_ && attempt_->deadline <= now) {
    Rest(now);
    GiveUp(attempt_->waiting.empty()
               ? "the servers have not stored it in time"
               : ToString(SlotId{Role::kWorker, attempt_->waiting.begin()->first}) +
                     " did not come to rest in time");
    if (requested_) {
      next_ = now + kRetry;
    }
  }
  if (!attempt_ && next_ && *next_ <= now) {
    Begin(now);
  }
}

std::optional<CheckpointTaker::TimePoint> CheckpointTaker::NextTimer() const {
  return attempt_ ? std::optional<TimePoint>(attempt_->deadline) : next_;
}

}  // namespace adamant::controller
