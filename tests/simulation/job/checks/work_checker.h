#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/core/state/state.h"
#include "services/common/base/ids.h"
#include "services/data_server/core/ledger.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/core/order.h"
#include "tests/simulation/engine/violations.h"
#include "tests/simulation/job/setup/setup.h"

namespace adamant::simulation {

using data_server::WorkerId;

/// Keeps books of its own of every batch that is dispatched, acknowledged and counted: each counts
/// once per epoch, only what is stored is answered, nothing after the epoch is closed; and each
/// validation batch once per evaluation.
/// Threads: one.
class WorkChecker {
 public:
  /// Both must outlive this.
  WorkChecker(const Setup& setup, Violations& violations);

  void Dispatched(const data_server::Dispatch& dispatch);

  /// A worker sends this result.
  void Acknowledging(const data_server::BatchId& batch);

  /// A data server, which joined this attempt, answers results. `snapshot`: that it evaluates.
  void Answered(WorkerId server,
                std::uint64_t attempt,
                const data_server::Acknowledged& answer,
                std::uint64_t snapshot);

  /// A ledger is on disk.
  void LedgerStored(std::uint32_t part, std::uint64_t version, const std::string& value);

  /// Of the record that was seen last.
  [[nodiscard]] std::uint64_t ledger_version(std::uint32_t part) const {
    const auto found = versions_.find(part);
    return found == versions_.end() ? 0 : found->second;
  }

  /// The controller asks for this snapshot; the job goes back to it, and on in `epoch`, as this
  /// attempt.
  void SnapshotAsked(std::uint64_t snapshot) {
    at_snapshot_.try_emplace(snapshot, AtSnapshot{ledgers_, acknowledged_});
  }
  void WentBack(std::uint64_t snapshot, DataEpoch epoch, std::uint64_t attempt);

  /// The first weights are made anew, under the id of a snapshot.
  void MadeAnew(std::uint64_t snapshot) {
    at_snapshot_.try_emplace(snapshot, AtSnapshot{NewLedgers(), {}});
  }

  /// A data server reports the sums of an evaluation.
  void Evaluated(WorkerId server, const data_server::Evaluated& sum);

  /// The controller has the row of an epoch whose parts are closed.
  void EpochDone(const controller::EpochResult& row);

 private:
  using TrainBatch = std::tuple<std::uint64_t, std::uint32_t, std::uint32_t>;  // epoch, part, index

  struct AtSnapshot {
    std::vector<data_server::Ledger> ledgers;
    std::set<TrainBatch> acknowledged;
  };

  [[nodiscard]] std::uint32_t ValidationBatches() const;
  [[nodiscard]] std::vector<data_server::Ledger> NewLedgers() const;

  const Setup& setup_;
  Violations& violations_;
  const data_server::PartLayout layout_;
  std::vector<data_server::Ledger> ledgers_;         // by part, as stored
  std::map<std::uint32_t, std::uint64_t> versions_;  // likewise
  std::map<std::uint64_t, AtSnapshot> at_snapshot_;  // when it was asked for
  std::map<std::pair<DataEpoch, std::uint32_t>, data_server::Ledger> last_of_;  // by epoch and part
  std::set<TrainBatch> acknowledged_;                                           // by workers
  std::set<TrainBatch> answered_;                                               // as counted
  std::uint64_t attempt_ = 1;
  std::map<std::tuple<WorkerId, std::uint64_t>, std::set<std::uint32_t>> evaluated_;
};

}  // namespace adamant::simulation
