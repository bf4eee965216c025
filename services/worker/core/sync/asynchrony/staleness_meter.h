#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "services/common/base/ids.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// Measures, in examples, what others do while this worker computes: from what servers say of each
/// shard with every value and every acknowledgement. What a server says after it has loaded or
/// learnt a shard anew counts from 0 again, and is left out until the next fetch.
/// Threads: one at a time.
class StalenessMeter {
 public:
  explicit StalenessMeter(std::size_t shards);

  /// A push of this many examples starts, computed from what was applied first since the last push,
  /// and then perhaps from later values.
  void OnPush(Sequence sequence, std::uint64_t examples);

  /// A value of now came.
  void OnValue(const FetchedShard& fetched);

  /// All values of a fetch are there; and it has been applied.
  void OnFetched();
  void OnApplied();

  /// The values of now replaced whatever the worker had, which had no batch for long: what others
  /// did meanwhile is compared with nothing.
  void OnRenewed();

  /// Pushes were acknowledged as applied.
  void OnReply(Sequence sequence, const std::vector<ShardAck>& acks);

  /// Examples of others that the servers took between a fetch of this worker and the push whose
  /// first batches were computed from it: a moving mean. 0 before the first.
  [[nodiscard]] double gap_examples() const { return gap_; }

  [[nodiscard]] bool knows_gap() const { return gaps_ > 0; }

  /// The same of the last reply; negative when unknown.
  [[nodiscard]] double last_gap_examples() const { return last_gap_; }

  /// Examples of others for each of this worker's own: a moving mean.
  [[nodiscard]] double others_per_own() const { return own_ > 0 ? others_ / own_ : 0; }

  /// Enough fetches have come to tell.
  [[nodiscard]] bool knows_others() const { return growths_ >= 3; }

  /// Examples of others between the last two fetches; 0 when unknown.
  [[nodiscard]] double moved() const { return moved_; }

  /// Others have trained since this worker began.
  [[nodiscard]] bool seen_others() const { return seen_others_; }

  /// Returns whether others had trained already when the first fetch came.
  [[nodiscard]] bool joined_others() const { return joined_others_; }

 private:
  /// Of others, by shard; negative: not known.
  using Counts = std::vector<std::int64_t>;
  struct Pushed {
    std::uint64_t own = 0;                // examples up to and with this push
    std::shared_ptr<const Counts> first;  // what it was begun from
    std::shared_ptr<const Counts> last;   // what was applied last
  };

  [[nodiscard]] std::int64_t OthersOf(Sequence included, std::uint64_t examples) const;
  /// Others' examples of this growth with this worker's own, those of pushes that the next values
  /// will have among them. Before its first push nothing can be compared.
  void Compare(double growth);
  void SeeGap(double gap);
  void SeeOthers();

  Counts incoming_;
  std::uint64_t incoming_own_ = 0;         // examples that the values include
  std::shared_ptr<const Counts> fetched_;  // waits to be applied
  std::shared_ptr<const Counts> base_;     // of what was applied last
  std::shared_ptr<const Counts> first_;    // of what was applied first since the last push
  std::uint64_t own_at_last_fetch_ = 0;
  std::map<Sequence, Pushed> pushes_;  // the last ones
  std::uint64_t own_pushed_ = 0;

  double gap_ = 0;
  double last_gap_ = -1;
  std::uint64_t gaps_ = 0;
  std::uint64_t growths_ = 0;
  double others_ = 0;
  double own_ = 0;
  double not_compared_ = 0;  // examples of others since the last value with more of this worker's
  double moved_ = 0;
  bool seen_others_ = false;
  bool joined_others_ = false;
};

}  // namespace adamant::worker
