#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/roster.h"
#include "operator/core/state.h"

namespace adamant::controller {

/// Which parameter server holds which bucket, and which data server deals which part of the
/// training data; tells the members. Threads: one thread at a time.
class Placement {
 public:
  /// The arguments must outlive this.
  Placement(const JobSettings& settings, JobState& state, Outbox& outbox, Roster& roster);

  /// Assigns the buckets once every parameter server has joined.
  void AssignBuckets();

  /// Gives parts of data servers that do not run to running ones. While the job starts there is
  /// nothing to gain from it: their owners are on their way. Returns whether anything changed.
  bool ReassignParts();

  /// Gives each part back to the data server of its own number, where that one runs. Only between
  /// epochs: a part that moves takes its leases down. Returns whether anything changed.
  bool RebalanceParts();

  /// A parameter server reports its buckets. Reports of an old map or of buckets that it does not
  /// hold are ignored. Returns whether the map changed. Error: DataLoss when a created bucket is
  /// lost, saying which and why.
  absl::StatusOr<bool> OnBucketsReady(std::uint32_t server, const BucketsReady& report);

  /// The buckets of this server must be reported anew.
  void OnServerLost(std::uint32_t server);

  /// Every bucket is ready to be used and every part has an owner that has started.
  [[nodiscard]] bool Complete() const;

  [[nodiscard]] std::uint32_t BucketsOf(std::uint32_t server) const;

  /// Sends the whole view to everybody, under a new version.
  void Publish();

 private:
  [[nodiscard]] Membership View() const;

  const JobSettings& settings_;
  JobState& state_;
  Outbox& outbox_;
  Roster& roster_;
  std::vector<bool> ready_;    // by bucket
  std::uint32_t changes_ = 0;  // published under this term
};

}  // namespace adamant::controller
