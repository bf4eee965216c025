#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/status_macros.h"
#include "services/common/tensor/shard_layout.h"
#include "services/worker/core/base/float_buffer.h"
#include "services/worker/core/base/messages.h"

namespace adamant::worker {

/// Fills a range with the next values of a reply's payload.
using ReadValues = std::function<absl::Status(std::span<float>)>;

/// Puts the values of a reply to a fetch where they belong among the flat parameters.
/// Threads: one at a time.
class FetchReader {
 public:
  explicit FetchReader(const ShardLayout& layout) : layout_(layout) {}  // must outlive this

  /// Reads every shard found, in order: those at the positions `fresh` of the reply into `values`,
  /// [flat parameters], each then told to `on_value`; the others past them. Errors: those of
  /// `read`.
  template <class OnValue>
  absl::Status Read(const FetchReply& reply,
                    const std::vector<std::size_t>& fresh,
                    const ReadValues& read,
                    std::span<float> values,
                    const OnValue& on_value) {
    auto next = fresh.begin();
    for (std::size_t i = 0; next != fresh.end(); ++i) {
      const FetchedShard& fetched = reply.shards[i];
      if (fetched.outcome != FetchOutcome::kFound) {
        continue;
      }
      const Shard& shard = layout_.shards()[fetched.shard];
      if (i != *next) {
        ADAMANT_RETURN_IF_ERROR(read(Unwanted(shard.size())));
        continue;
      }
      ++next;
      const std::uint64_t begin = layout_.OffsetOf(shard.tensor) + shard.begin;
      ADAMANT_RETURN_IF_ERROR(read(values.subspan(begin, shard.size())));
      on_value(fetched);
    }
    return absl::OkStatus();
  }

 private:
  std::span<float> Unwanted(std::size_t size) {
    if (unwanted_.span().size() < size) {
      unwanted_ = FloatBuffer(size);
    }
    return unwanted_.span().first(size);
  }

  const ShardLayout& layout_;
  FloatBuffer unwanted_;  // values that nobody waits for any more
};

}  // namespace adamant::worker
