#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/engine/disk.h"
#include "tests/simulation/job/processes/loss_window.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/peers.h"

namespace adamant::simulation {

/// A parameter server around its real core. Mirrors services/parameter_server/rpc: pushes of one
/// stream are served one after another; what waits for the disk is done a moment later, and so is
/// applying what others' messages have committed.
/// Threads: one.
class ParameterServerProcess final : public MemberProcess, private parameter_server::Driver {
 public:
  /// `disk` must outlive this.
  ParameterServerProcess(World& world,
                         const ProcessStart& start,
                         std::function<void(std::string)> exited,
                         Disk& disk);

  void OnKilled(Death death) override;

  /// The disk is full for this long: so much more may be unflushed.
  void Hindered(Clock::Duration time) { window_.Hinder(time); }

  /// The same of a pause of the process; others take over meanwhile.
  void Pauses(Clock::Duration time);

 protected:
  absl::Status Start(const controller::Welcome& welcome) override;
  void OnAttending() override;
  void OnControl(const controller::ControllerMessage& message) override;
  controller::Heartbeat MakeHeartbeat() override;
  void Stop() override;
  void OnServiceMessage(StreamId stream, StreamKind kind, Message& message) override;
  void OnServiceEnded(StreamId stream, StreamKind kind) override;

 private:
  /// A worker's stream, or a reader's.
  struct Client {
    std::optional<WorkerId> writer;  // none: only fetches
    bool busy = false;               // a push is not answered yet
    std::deque<Message> waiting;     // behind it
  };

  // What the core asks for.
  void SendToPeer(const parameter_server::ServerId& to,
                  parameter_server::PeerMessage message) override;
  void Propose(const parameter_server::Proposal& proposal) override;
  void Report(const parameter_server::BucketReport& report) override;
  void WantApply() override;
  void WantStorage() override;

  // Traffic.
  void OnHello(StreamId stream, const ExchangeHello& hello);
  void OnRequest(StreamId stream, Client& client, const Message& message);
  void OnPush(StreamId stream, Client& client, const std::shared_ptr<PushFrame>& frame);
  void OnPushed(StreamId stream,
                const std::shared_ptr<PushFrame>& frame,
                const WorkerId& writer,
                const std::vector<parameter_server::ShardAck>& acks);
  void OnFetch(StreamId stream, const Client& client, const worker::FetchMessage& fetch);
  void OnFlush(StreamId stream, const Client& client, const worker::FlushMessage& flush);
  void OnGet(StreamId stream, const GetRecord& get);
  void OnPut(StreamId stream, const PutRecord& put);
  [[nodiscard]] bool IsOvertaken(const std::string& key, std::uint64_t version) const;
  void SeeLedger(const std::string& key, std::uint64_t version, const std::string& value);
  void OnPeerHello(StreamId stream, const PeerHello& hello);
  void HearServed();
  void Relabel(parameter_server::Push& push);
  void Tick();

  // The disk.
  void PlanStorage(Clock::TimePoint time);
  void PlanStorageBy(Clock::TimePoint local);
  void DoStorage();
  absl::Status DoDue();
  void TellStored();
  absl::Status TakeSnapshot(const controller::TakeSnapshot& take);
  absl::Status ShowStored(std::uint64_t snapshot, BucketId bucket);
  absl::Status Flush();
  void PushAgain();
  void OrphanBuckets();
  [[nodiscard]] bool IsKnown(BucketId bucket) const;
  void Observe();
  [[nodiscard]] std::vector<ShardId> ShardsOf(BucketId bucket) const;

  Disk& disk_;
  std::map<BucketId, ConfigurationVersion> versions_;  // as the controller told them last
  LossWindow window_;
  std::optional<parameter_server::ParameterServer> core_;
  std::optional<Peers> peers_;
  bool open_ = false;  // the gate
  std::map<StreamId, Client> clients_;
  std::map<StreamId, parameter_server::ServerId> peers_in_;

  std::map<std::uint32_t, Incarnation> writers_from_;  // by slot, as snapshots were asked for

  bool read_ = false;  // what is stored
  std::deque<controller::TakeSnapshot> snapshots_;
  std::optional<Clock::TimePoint> storage_at_;
  bool apply_planned_ = false;
  bool storage_failed_ = false;
  std::map<BucketId, std::uint64_t> observed_;  // generations that were seen
  bool has_disk_ = false;
  std::uint64_t job_uid_ = 0;

  std::uint64_t relabelled_ = 0;  // kNoDeduplication
};

}  // namespace adamant::simulation
