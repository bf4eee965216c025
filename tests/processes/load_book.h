#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::processes {

/// What one writer has asked of the parameter servers and been told, and what their values must
/// therefore be.
///
/// Every update adds 1 to one element of one shard. Element i belongs to writer i mod `writers`,
/// and a writer goes through its elements in order. Of each shard one update is in flight, under
/// the next sequence; a repetition carries the same bytes. In the end an element exceeds its
/// initial value by the number of its updates that were acknowledged, and at most by one more if
/// one is unanswered: an acknowledged update counts once, a refused one never.
/// Threads: one.
class LoadBook {
 public:
  /// More of a kind are not told.
  static constexpr std::size_t kMaxFaults = 20;

  struct Options {
    std::uint32_t writer = 0;
    std::uint32_t writers = 1;
    bool retain = true;  ///< sends again what a server lost; else skips it
  };

  LoadBook(const ShardLayout& layout, const Options& options);  // layout must outlive this

  struct Update {
    ShardId shard = 0;
    Sequence sequence = 0;
    std::uint64_t element = 0;  ///< that grows by 1
    bool poisoned = false;      ///< the writer's next element gets a NaN: to be refused
    bool after_loss = false;
  };

  /// What was told of an update.
  enum class Answer : std::uint8_t { kAcknowledged, kRefused, kUnexpected };

  /// Starts the next update of the shard, which must have none in flight.
  const Update& Begin(ShardId shard, bool poisoned);

  /// The update in flight; null when there is none.
  [[nodiscard]] const Update* InFlight(ShardId shard) const;

  /// An answer to the shard's update of this sequence. `expected`: with kUnexpected, the sequence
  /// that the server wants. An answer to another update than that in flight is ignored. What an
  /// unexpected sequence asks for is in flight afterwards.
  void OnAnswer(ShardId shard, Sequence sequence, Answer answer, std::uint64_t expected);

  /// A server said that the shard's updates up to this sequence are on disk: no rollback may reach
  /// them.
  void OnPersisted(ShardId shard, Sequence sequence);

  /// The last acknowledged sequence; 0: none.
  [[nodiscard]] std::uint64_t acknowledged(ShardId shard) const {
    return shards_[shard].acknowledged;
  }

  /// What is wrong with the values of a shard, read after its last answer: one line per element, at
  /// most `limit`.
  [[nodiscard]] std::vector<std::string> Check(ShardId shard,
                                               std::span<const float> initial,
                                               std::span<const float> values,
                                               std::size_t limit) const;

  /// Whether acknowledged updates that a server lost are still to be sent again.
  [[nodiscard]] bool Behind(ShardId shard) const {
    return shards_[shard].next <= shards_[shard].acknowledged;
  }

  struct Counts {
    std::uint64_t acknowledged = 0;
    std::uint64_t refused = 0;
    std::uint64_t unanswered = 0;   ///< in flight
    std::uint64_t rolled_back = 0;  ///< acknowledged, then asked for again
    std::uint64_t lost = 0;         ///< of these, not sent again
  };
  [[nodiscard]] Counts counts() const;

  /// What a server did that it must not do.
  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }

 private:
  struct ShardState {
    std::uint64_t elements = 0;  // of this writer
    std::uint64_t drawn = 0;     // elements used so far, again from the first after the last
    std::vector<std::uint64_t> element_of;  // by sequence - 1; kLost for what was skipped
    Sequence acknowledged = 0;
    Sequence persisted = 0;
    std::uint64_t next = 1;  // sequence of the update in flight or to come; lower after a rollback
    bool after_loss = false;
    std::optional<Update> in_flight;
  };

  [[nodiscard]] std::uint64_t Draw(ShardState& shard) const;
  void OnUnexpected(ShardId shard, std::uint64_t expected);

  const ShardLayout& layout_;
  const Options options_;
  std::vector<ShardState> shards_;
  Counts counts_;
  std::vector<std::string> violations_;
};

}  // namespace adamant::processes
