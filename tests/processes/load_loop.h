#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/base/rng.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/frame.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/rpc/inbox.h"
#include "tests/processes/commit_times.h"
#include "tests/processes/load_book.h"
#include "tests/processes/load_report.h"
#include "tests/processes/load_servers.h"
#include "tests/processes/load_settings.h"

namespace adamant::v1 {
class ShardAck;
class ShardValue;
}  // namespace adamant::v1

namespace adamant::processes {

/// Who pushes, into what.
struct LoadIdentity {
  std::uint64_t job_uid = 0;
  std::uint32_t slot = 0;
  std::uint32_t writers = 1;
  Incarnation incarnation = 0;
  std::uint64_t seed = 0;  ///< of the initial values
  std::filesystem::path folder;
};

/// Pushes updates to all shards of a job, as a worker does, until the file `finish` appears in its
/// folder; then reads all shards, compares them with the book, and writes `report.json`. Meanwhile
/// `progress.json` tells, several times a second, how it goes.
/// Threads: public members from any; has one of its own.
class LoadLoop {
 public:
  using TimePoint = CommitTimes::TimePoint;

  LoadLoop(LoadIdentity identity, const LoadSettings& settings, ShardLayout layout);
  ~LoadLoop();

  void OnMembership(const protocol::Membership& membership);

  /// Begins no update from now on, until OnResume; calls `paused` once none is in flight, with the
  /// updates begun so far. `paused` runs on the loop's thread; a later call replaces it.
  void OnPause(std::function<void(std::uint64_t begun)> paused);
  void OnResume();

 private:
  /// The update of a shard on its way.
  struct Flight {
    std::uint64_t number = 0;  // of this shard's updates, repetitions not counted
    LoadServers::Route route;  // that it was sent by
    TimePoint begun;
    TimePoint sent;
    TimePoint not_before;  // when it is to be sent next
  };

  /// A request without a reply.
  struct Request {
    ShardId shard = 0;
    std::uint32_t server = 0;
    std::uint64_t flight = 0;  // 0: a fetch
    Sequence sequence = 0;
    std::uint64_t rolled_back = 0;  // fetch: counts before it
  };

  enum class Stage : std::uint8_t { kPushing, kDraining, kChecking, kDone };

  void Run();
  void Turn(TimePoint now);
  void OnPlacement(const protocol::Membership& membership);
  void OnLost(std::uint32_t server);
  void BeginUpdates(TimePoint now);
  void CatchUp(TimePoint now);
  void Begin(ShardId shard, bool poisoned, TimePoint now);
  void SendUpdates(TimePoint now);
  void SendUpdate(const LoadBook::Update& update, const LoadServers::Route& route, TimePoint now);
  void RepeatUnanswered(TimePoint now);
  void Fetch(ShardId shard);
  void OnReply(const rpc::IncomingFrame& frame);
  void OnAck(const Request& request, const v1::ShardAck& ack, TimePoint now);
  void OnValue(const Request& request,
               const v1::ShardValue& value,
               const rpc::IncomingFrame& frame);
  void CheckValues(ShardId shard, const rpc::IncomingFrame& frame);
  void Advance(TimePoint now);
  void NoteAcknowledged(const Request& request, TimePoint now);
  void NoteRollback(const Request& request, std::uint64_t expected);
  void Violate(const std::string& what);

  // Constant after construction.
  const LoadIdentity identity_;
  const LoadSettings settings_;
  const ShardLayout layout_;

  // Of the loop's thread.
  LoadBook book_;
  CommitTimes times_;
  Rng rng_;
  std::optional<LoadServers> servers_;
  std::vector<Flight> flights_;  // by shard
  std::deque<ShardId> free_;     // without an update in flight
  std::set<ShardId> unsent_;     // with one that is to be sent
  std::unordered_map<std::uint64_t, Request> requests_;
  std::uint64_t last_request_ = 0;
  std::uint64_t begun_ = 0;
  std::uint64_t reads_ = 0;
  std::map<std::string, std::uint64_t> answers_;         // to updates, by outcome
  std::vector<std::vector<TimePoint>> acknowledged_at_;  // by shard, by sequence - 1
  std::vector<Rollback> rollbacks_;
  std::vector<std::string> stale_reads_;
  std::vector<std::string> violations_;
  std::set<ShardId> unchecked_;
  Stage stage_ = Stage::kPushing;
  bool pausing_ = false;
  std::function<void(std::uint64_t)> paused_;  // to be called
  TimePoint stage_began_;
  TimePoint next_update_;
  TimePoint next_read_;
  TimePoint next_look_;  // at files, and at what has no answer

  std::atomic<bool> quit_{false};
  worker::Inbox inbox_;
  std::jthread thread_;
};

}  // namespace adamant::processes
