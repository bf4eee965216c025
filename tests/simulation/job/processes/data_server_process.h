#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>

#include "services/data_server/core/batch_scheduler.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/record_calls.h"

namespace adamant::simulation {

/// A data server around its real core. Mirrors services/data_server/rpc, without the images.
/// Threads: one.
class DataServerProcess final : public MemberProcess {
 public:
  DataServerProcess(World& world,
                    const ProcessStart& start,
                    std::function<void(std::string)> exited);

 protected:
  absl::Status Start(const controller::Welcome& welcome) override;
  void OnControl(const controller::ControllerMessage& message) override;
  void OnAway() override { Handle(data_server::ControllerAway{}); }
  void OnAttending() override { Handle(data_server::ControllerBack{}); }
  controller::Heartbeat MakeHeartbeat() override;
  void Stop() override { Leave(); }
  void OnServiceMessage(StreamId stream, StreamKind kind, Message& message) override;
  void OnServiceEnded(StreamId stream, StreamKind kind) override;

 private:
  void Handle(const data_server::Input& input);
  void PlanWake();
  void OnHello(StreamId stream, data_server::Hello hello);
  void OnMembership(const controller::Membership& view);

  void Do(const data_server::HelloAnswer& answer);
  void Do(const data_server::Dispatch& dispatch);
  void Do(const data_server::Acknowledged& answer);
  void Do(const data_server::Drained& drained) { SendTo(drained.to, drained); }
  void Do(const data_server::EpochClosed& closed) { SendTo(closed.to, closed); }
  void Do(const data_server::Disconnect& disconnect);
  void Do(const data_server::EpochEnded& ended);
  void Do(const data_server::PartClosed& closed);
  void Do(const data_server::Evaluated& evaluated);
  void Do(const data_server::OpenedAlone& opened) {
    world_.scheduler.Record(life->name, "opens an epoch without a controller", opened.epoch);
  }
  void Do(const data_server::Failed& failed) { Fail(absl::InvalidArgumentError(failed.reason)); }
  void Do(const data_server::ReadRecord& read);
  void Do(const data_server::WriteRecord& write);

  void SendTo(WorkerId worker, Message message);
  [[nodiscard]] WorkerId Self() const { return {start().id.slot, incarnation()}; }
  [[nodiscard]] WorkerId Disguise(WorkerId worker) const;

  std::optional<data_server::BatchScheduler> scheduler_;
  RecordCalls records_;
  std::map<WorkerId, StreamId> streams_;
  std::map<StreamId, WorkerId> workers_;
  std::optional<Clock::TimePoint> wake_at_;
  std::uint64_t snapshot_ = 0;           // being evaluated
  std::set<std::uint32_t> begun_parts_;  // kOwnerIgnoresRecord
  std::set<WorkerId> ever_seen_;         // kLeasesNeverEnd
};

}  // namespace adamant::simulation
