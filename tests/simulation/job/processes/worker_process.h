#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/backoff.h"
#include "services/common/base/ids.h"
#include "services/worker/core/worker.h"
#include "services/worker/rpc/drained_servers.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/trainer.h"

namespace adamant::simulation {

/// A worker around its real core. Mirrors services/worker/rpc: what arrives is posted to the
/// exchange loop, but for batches, which go to the threads at once; a data server's stream waits
/// while no slot is free.
/// Threads: one.
class WorkerProcess final : public MemberProcess {
 public:
  WorkerProcess(World& world, const ProcessStart& start, std::function<void(std::string)> exited);

  /// At the end of the job: whether what it believes was lost can be judged, and is right.
  void CheckLosses();

 protected:
  absl::Status Start(const controller::Welcome& welcome) override;
  void OnControl(const controller::ControllerMessage& message) override;
  controller::Heartbeat MakeHeartbeat() override;
  void Stop() override;
  void OnServiceMessage(StreamId stream, StreamKind kind, Message& message) override;
  void OnServiceEnded(StreamId stream, StreamKind kind) override;

 private:
  using PeerKey = std::pair<StreamKind, worker::ServerSlot>;

  /// A link to a server.
  struct Peer {
    std::string address;
    Incarnation incarnation = 0;
    std::uint64_t number = 0;  // of all peers; tells this one from a later one in its place
    std::optional<Backoff> backoff;
    StreamId stream = 0;
    bool connected = false;
    std::deque<Message> held_up;  // behind a batch that waits for a slot
    bool ended = false;           // the stream is, with a batch still waiting
    DataEpoch begun_epoch = 0;    // that a training batch has come of
  };

  // The loop.
  void Post(std::function<void()> task);
  void PlanTurn(Clock::TimePoint time);
  void Turn();
  absl::Status Advance();
  void KeepLeases();
  void Notify();

  // Links.
  void UpdatePeers(const controller::Membership& view);
  void Connect(PeerKey key, std::uint64_t number);
  void Reconnect(PeerKey key);
  void SetConnected(PeerKey key, bool connected);
  Peer* Find(StreamId stream, PeerKey& key);
  void OnWork(PeerKey key, Peer& peer, Message& message);
  bool Receive(PeerKey key, const Message& message);
  void ReceiveHeldUp();

  // Messages.
  void SendMessages();
  void SendTo(PeerKey key, Message message);
  void SendPush(const worker::PushMessage& push);
  void SendFetch(worker::FetchMessage fetch);
  void SendResults(const worker::AcknowledgeMessage& acknowledge);
  void SendHandBack(const worker::HandBackMessage& hand_back);
  void AcknowledgeEarly(const worker::Lease& lease);
  static void ChangeBytes(PushFrame& frame);

  [[nodiscard]] WorkerId Self() const { return {start().id.slot, incarnation()}; }

  std::unique_ptr<worker::Worker> worker_;
  std::unique_ptr<worker::DrainedServers> drained_;
  std::vector<std::unique_ptr<Trainer>> trainers_;

  std::vector<std::function<void()>> tasks_;
  std::optional<Clock::TimePoint> turn_at_;
  Clock::TimePoint keep_leases_at_{};
  absl::Status status_;
  bool stopping_ = false;
  bool left_ = false;

  std::uint64_t trained_examples_ = 0;

  std::uint64_t membership_version_ = 0;
  std::map<PeerKey, Peer> peers_;
  std::uint64_t peers_made_ = 0;
  worker::PlacementView placement_;
  std::set<std::pair<Sequence, ShardId>> sent_;  // kChangedRetry
  std::uint64_t last_snapshot_ = 0;              // kEvaluatesOtherModel
};

}  // namespace adamant::simulation
