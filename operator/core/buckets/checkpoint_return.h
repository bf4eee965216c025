#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "operator/core/buckets/configurations.h"
#include "operator/core/buckets/parameter_servers.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"

namespace adamant::controller {

/// The buckets' part of going back: restores all of them together as the job's checkpoint has them,
/// parameters, tables and ledger; knows whether that may be done, and can.
/// Threads: one thread at a time.
/// Source: docs/design/0010-divergence.md.
class CheckpointReturn {
 public:
  /// The arguments must outlive this.
  CheckpointReturn(const JobSettings& settings,
                   JobState& state,
                   Configurations& configurations,
                   const ParameterServers& servers)
      : settings_(settings), state_(state), configurations_(configurations), servers_(servers) {}

  /// A controller begins. `none_lives`: every process that an earlier one has started is dead.
  void Begin(bool none_lives);

  /// The job has begun under this controller.
  void OnJobBegun() { may_go_back_ = went_back_ = false; }

  /// Takes in what the disk of this process holds.
  void OnStored(ServerId server, const StoredBuckets& stored);

  /// Before the job begins, with no process of before alive, the job may go back for what is lost.
  [[nodiscard]] bool may_go_back() const { return may_go_back_; }

  /// Each disk that has a part of the checkpoint is open, and known; for weights that are made
  /// anew, each disk.
  [[nodiscard]] bool HasDisksRunning() const;

  /// A server that has nothing of any bucket on its disk has lost that, and no checkpoint is on it.
  [[nodiscard]] bool MayReadCheckpoint() const;

  /// Sets all buckets back: the primary of each is to restore it from the checkpoint, or to make it
  /// anew.
  void GoBack();

  /// Returns true if GoBack was called since this was called last.
  bool TakeReturned() { return std::exchange(returned_, false); }

  /// Every process is being ended, and the state says that the job goes back.
  void OnGoingBack() { went_back_ = false; }

  /// The buckets are set back for that, and the job has not begun since.
  void SetWentBack() { went_back_ = true; }
  [[nodiscard]] bool went_back() const { return went_back_; }

  /// The configurations have been settled.
  void OnSettled(bool all_served) { at_checkpoint_ = at_checkpoint_ && !all_served; }

  /// GoBack was called, and not all buckets have been served since.
  [[nodiscard]] bool at_checkpoint() const { return at_checkpoint_; }

  /// Returns true if a job that ends now has a checkpoint to go back to when it is resumed.
  [[nodiscard]] bool MayGoBackLater() const;

  /// Tells why a bucket cannot come back, and what people can do if the job does not help itself.
  [[nodiscard]] std::string WhatHelps(const absl::Status& why) const;

 private:
  const JobSettings& settings_;
  JobState& state_;
  Configurations& configurations_;
  const ParameterServers& servers_;
  // By slot of those that had not one complete bucket on their disk: the newest checkpoint then.
  std::map<std::uint32_t, std::uint64_t> empty_disks_;
  bool may_go_back_ = false;
  bool went_back_ = false;
  bool at_checkpoint_ = false;
  bool returned_ = false;
};

}  // namespace adamant::controller
