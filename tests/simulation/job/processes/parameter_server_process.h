#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>

#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/engine/disk.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/parameter_server/bucket_observer.h"
#include "tests/simulation/job/processes/parameter_server/record_requests.h"
#include "tests/simulation/job/processes/parameter_server/storage_loop.h"
#include "tests/simulation/job/processes/parameter_server/worker_requests.h"
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
  void Hindered(Clock::Duration time) { buckets_.Hinder(time); }

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
  // What the core asks for.
  void SendToPeer(const parameter_server::ServerId& to,
                  parameter_server::PeerMessage message) override;
  void Propose(const parameter_server::Proposal& proposal) override;
  void Report(const parameter_server::BucketReport& report) override;
  void WantApply() override;
  void WantStorage() override;

  void MakeParts(const controller::Welcome& welcome);
  void OnMembership(const controller::Membership& view);
  void OnPeerHello(StreamId stream, const PeerHello& hello);
  void OnPeerLetter(StreamId stream, PeerLetter& letter);
  void Tick();

  Disk& disk_;
  BucketObserver buckets_;
  // From Start on.
  std::optional<parameter_server::ParameterServer> core_;
  std::optional<Peers> peers_;
  std::optional<WorkerRequests> workers_;
  std::optional<RecordRequests> records_;
  std::optional<StorageLoop> storage_;
  bool open_ = false;  // the gate
  std::map<StreamId, parameter_server::ServerId> peers_in_;
  bool apply_planned_ = false;
};

}  // namespace adamant::simulation
