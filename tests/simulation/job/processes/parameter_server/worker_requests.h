#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/job/network/network.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// The streams of workers to a parameter server, and of readers: pushes, fetches and flushes of one
/// stream are served one after another. Mirrors services/parameter_server/rpc/workers.
/// Threads: one.
class WorkerRequests {
 public:
  using WorkerId = parameter_server::WorkerId;

  /// `owner` answers. All must outlive this.
  WorkerRequests(World& world, MemberProcess& owner, parameter_server::ParameterServer& core)
      : world_(world), owner_(owner), core_(core) {}

  void OnHello(StreamId stream, const ExchangeHello& hello);

  /// What comes after it; dropped if the stream was not let in.
  void OnMessage(StreamId stream, Message& message);
  void OnEnded(StreamId stream) { clients_.erase(stream); }

  /// A snapshot is asked for: by worker slot, incarnations below these have been given up.
  void RefuseWritersBelow(std::span<const Incarnation> incarnations);

  /// What still waits is not served any more.
  void Close() { open_ = false; }

 private:
  /// A worker's stream, or a reader's.
  struct Client {
    std::optional<WorkerId> writer;  // none: only fetches
    bool busy = false;               // a push is not answered yet
    std::deque<Message> waiting;     // behind it
  };

  using Generations = std::map<BucketId, std::uint64_t>;

  void OnRequest(StreamId stream, Client& client, const Message& message);
  void OnPush(StreamId stream, Client& client, const std::shared_ptr<PushFrame>& frame);
  [[nodiscard]] std::vector<parameter_server::ShardAck> ThatCount(
      std::vector<parameter_server::ShardAck> acks, const Generations& before) const;
  void OnPushed(StreamId stream,
                const std::shared_ptr<PushFrame>& frame,
                const WorkerId& writer,
                const std::vector<parameter_server::ShardAck>& acks);
  void OnFetch(StreamId stream, const Client& client, const worker::FetchMessage& fetch);
  void OnFlush(StreamId stream, const Client& client, const worker::FlushMessage& flush);
  void GoOn(StreamId stream);
  void Relabel(parameter_server::Push& push);

  World& world_;
  MemberProcess& owner_;
  parameter_server::ParameterServer& core_;
  bool open_ = true;
  std::map<StreamId, Client> clients_;
  std::map<std::uint32_t, Incarnation> writers_from_;  // by slot, as snapshots were asked for
  std::uint64_t relabelled_ = 0;                       // kNoDeduplication
};

}  // namespace adamant::simulation
