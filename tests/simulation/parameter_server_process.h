#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>

#include "services/parameter_server/core/parameter_server.h"
#include "tests/simulation/disk.h"
#include "tests/simulation/member_process.h"

namespace adamant::simulation {

/// A parameter server around its real core. Mirrors services/parameter_server/rpc: traffic is
/// served as it comes; what waits for the disk is done a moment later, one after another.
/// Threads: one.
class ParameterServerProcess final : public MemberProcess {
 public:
  /// `disk` must outlive this.
  ParameterServerProcess(World& world,
                         const ProcessStart& start,
                         std::function<void(std::string)> exited,
                         Disk& disk);

  void OnKilled() override;

  /// The disk was full, or the process paused, for this long: so much more may be unflushed.
  void Hindered(Clock::Duration time) { hindered_ += time; }

 protected:
  absl::Status Start(const controller::Welcome& welcome) override;
  void OnControl(const controller::ControllerMessage& message) override;
  controller::Heartbeat MakeHeartbeat() override;
  void Stop() override;
  void OnServiceMessage(StreamId stream, StreamKind kind, Message& message) override;
  void OnServiceEnded(StreamId stream, StreamKind kind) override;

 private:
  using Writer = parameter_server::Writer;

  // Traffic.
  void OnHello(StreamId stream, const ExchangeHello& hello);
  void OnPush(StreamId stream, const PushFrame& push);
  void OnFetch(StreamId stream, const worker::FetchMessage& fetch);
  RecordAnswer OnGet(const GetRecord& get);
  RecordAnswer OnPut(const PutRecord& put);
  void Relabel(parameter_server::Push& push);

  // The disk.
  void PlanStorage(Clock::Duration delay);
  void DoStorage();
  absl::Status DoDue();
  absl::Status Prepare();
  void Observe(BucketId bucket);
  absl::Status TakeSnapshot(const controller::TakeSnapshot& take);
  absl::Status Flush();

  Disk& disk_;
  std::optional<parameter_server::ParameterServer> core_;
  bool open_ = false;  // the gate
  std::map<StreamId, std::optional<Writer>> greeted_;

  bool prepare_ = false;
  std::deque<controller::TakeSnapshot> snapshots_;
  std::optional<Clock::TimePoint> storage_at_;
  bool storage_failed_ = false;
  std::set<BucketId> prepared_;
  Clock::Duration hindered_{0};
  bool has_disk_ = false;

  std::uint64_t relabelled_ = 0;  // kNoDeduplication
};

}  // namespace adamant::simulation
