#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "tests/simulation/engine/scheduler.h"
#include "tests/simulation/job/network/messages.h"

namespace adamant::simulation {

/// Rising from 1, never used twice.
using StreamId = std::uint64_t;

enum class StreamKind : std::uint8_t { kControl, kWork, kExchange, kRecord, kReplication };

/// One end of streams: a process. Called in the process's own time.
class Endpoint {
 public:
  explicit Endpoint(LifePtr life_in) : life(std::move(life_in)) {}
  virtual ~Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  virtual void OnMessage(StreamId stream, StreamKind kind, Message& message) = 0;

  /// The stream is gone, whoever ended it; not called for those this end closed itself.
  virtual void OnEnded(StreamId stream, StreamKind kind) = 0;

  const LifePtr life;
};

/// Streams between processes, as gRPC gives them: both directions are ordered and lossless until
/// the stream breaks; then what was under way is lost, and each end hears of it in its own time.
/// Threads: one.
class Network {
 public:
  /// More messages than this on their way in one direction count as an unbounded queue.
  static constexpr std::size_t kMostInFlight = 2000;

  explicit Network(Scheduler& scheduler) : scheduler_(scheduler) {}

  void Listen(const std::string& address, Endpoint& server) { listeners_[address] = &server; }

  /// Opens a stream; if nobody listens there, it ends a moment later.
  StreamId Open(Endpoint& client, const std::string& address, StreamKind kind);

  /// Sends from one end; dropped if the stream is gone.
  void Send(StreamId stream, const Endpoint& from, Message message);

  /// Ends a stream after what was sent before; nothing more reaches `from`.
  void Close(StreamId stream, const Endpoint& from);

  /// The process has ended, and all its streams with it. What it had sent may still arrive.
  void Remove(const Endpoint& endpoint);

  // --- Faults; they pick by number from those that exist

  [[nodiscard]] std::vector<StreamId> OpenStreams() const;
  [[nodiscard]] std::vector<StreamId> StreamsOf(const Endpoint& endpoint) const;
  [[nodiscard]] bool IsClient(StreamId stream, const Endpoint& endpoint) const;
  void Break(StreamId stream);
  void BreakAll(const Endpoint& endpoint);

  /// What one side sends is lost from now on, and the stream breaks after `delay`.
  void Silence(StreamId stream, bool client_side, Clock::Duration delay);

  /// Adds to the time that messages take.
  void Slow(StreamId stream, Clock::Duration extra);

  [[nodiscard]] std::size_t most_in_flight() const { return most_in_flight_; }
  [[nodiscard]] std::string busiest() const { return busiest_; }

 private:
  struct Side {
    Endpoint* endpoint = nullptr;  // null: it is gone, or closed its end
    std::deque<Message> inbound;   // on their way to it
    Clock::TimePoint last;         // when the last of them arrives
    bool mute = false;             // what it sends is lost
  };
  struct Stream {
    StreamKind kind = StreamKind::kControl;
    std::array<Side, 2> sides;  // client, server
    Clock::Duration extra{0};
    bool broken = false;
  };

  void Deliver(StreamId id, std::size_t to);
  void End(StreamId id, std::size_t to);
  void PlanEnd(StreamId id, std::size_t to, Clock::Duration delay);
  void EraseIfDone(StreamId id);

  Scheduler& scheduler_;
  std::map<std::string, Endpoint*> listeners_;
  std::map<StreamId, Stream> streams_;
  StreamId last_stream_ = 0;
  std::size_t most_in_flight_ = 0;
  std::string busiest_;
};

}  // namespace adamant::simulation
