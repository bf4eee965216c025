#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>

#include "absl/status/status.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/engine/disk.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// What a parameter server does with its disk: it reads it first, does what the core wants of it a
/// moment later, takes snapshots for the controller and flushes when it is time. Mirrors
/// services/parameter_server/rpc/storage/storage_loop.h.
/// Threads: one.
class StorageLoop {
 public:
  /// A full disk is tried again after this time.
  static constexpr auto kRetry = seconds(1);

  /// `owner` is whose disk it is; it fails when that does. `on_done` is called whenever something
  /// was done. All must outlive this.
  StorageLoop(World& world,
              MemberProcess& owner,
              parameter_server::ParameterServer& core,
              Disk& disk,
              std::function<void()> on_done);

  /// The core has something to do, or something has become due earlier.
  void Want();

  void Take(const controller::TakeSnapshot& take);

  /// Flushes once more; nothing is done any more then.
  void Close();

  /// Returns whether what is stored has been read, and the controller been told.
  [[nodiscard]] bool has_read() const { return read_; }

 private:
  void Plan(Clock::TimePoint time);
  void PlanBy(Clock::TimePoint local);
  void Turn();
  absl::Status DoDue();
  absl::Status TakeOne(const controller::TakeSnapshot& take);
  absl::Status ShowStored(std::uint64_t snapshot, BucketId bucket);
  absl::Status Flush();

  World& world_;
  MemberProcess& owner_;
  parameter_server::ParameterServer& core_;
  Disk& disk_;
  const std::function<void()> on_done_;
  bool open_ = true;
  bool read_ = false;  // what is stored
  std::deque<controller::TakeSnapshot> snapshots_;
  std::optional<Clock::TimePoint> turn_at_;
};

}  // namespace adamant::simulation
