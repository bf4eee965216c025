// What PushTracker sends: the parts that may go now, grouped into messages.

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "services/worker/core/push_tracker.h"

namespace adamant::worker {
namespace {

/// What one shard adds to a message.
struct Cost {
  std::uint64_t bytes = 0;
  std::uint64_t operand_bytes = 0;  // once per message for all shards of a tensor in a row
  std::uint32_t tensor = 0;
};

/// Groups shards into messages by server, each at most as large as is allowed.
template <class Message>
class Packer {
 public:
  Packer(std::uint64_t max_bytes, std::uint64_t& last_request)
      : max_bytes_(max_bytes), last_request_(last_request) {}

  /// The message to add a shard to; one that is full goes to `messages`.
  Message& Reserve(ServerSlot server,
                   const Cost& cost,
                   std::vector<PushTracker::Message>& messages) {
    Open& open = open_[server];
    const std::uint64_t more = CostIn(open, cost);
    if (open.message.request != 0 && more > 0 && open.bytes + more > max_bytes_) {
      messages.emplace_back(std::exchange(open, {}).message);
    }
    if (open.message.request == 0) {
      open.message.request = ++last_request_;
      open.message.server = server;
    }
    open.bytes += CostIn(open, cost);
    open.tensor = cost.tensor;
    return open.message;
  }

  void Finish(std::vector<PushTracker::Message>& messages) {
    for (auto& [server, open] : open_) {
      if (open.message.request != 0) {
        messages.emplace_back(std::move(open.message));
      }
    }
  }

 private:
  struct Open {
    Message message;
    std::uint64_t bytes = 0;
    std::optional<std::uint32_t> tensor;
  };
  static std::uint64_t CostIn(const Open& open, const Cost& cost) {
    return cost.bytes + (open.tensor == cost.tensor ? 0 : cost.operand_bytes);
  }

  const std::uint64_t max_bytes_;
  std::uint64_t& last_request_;
  std::map<ServerSlot, Open> open_;
};

}  // namespace

std::optional<ServerSlot> PushTracker::Route(ShardId shard, Clock::TimePoint now) {
  const BucketId bucket = layout_.shards()[shard].bucket;
  if (bucket >= map_.buckets.size()) {
    return std::nullopt;
  }
  const Gate& gate = gates_[shard];
  if (now < gate.at && map_.version <= gate.after_map) {
    next_poll_ = next_poll_.has_value() ? std::min(*next_poll_, gate.at) : gate.at;
    return std::nullopt;
  }
  const ServerSlot server = map_.buckets[bucket].primary;
  if (server >= connected_.size() || !connected_[server]) {
    return std::nullopt;
  }
  return server;
}

// An update must not reach its server before the shard's earlier ones have been sent there.
bool PushTracker::Overtakes(std::size_t push, std::size_t position, ServerSlot server) const {
  for (std::size_t i = 0; i < push; ++i) {
    const Part& earlier = pushes_[i].parts[position];
    if (!earlier.done && (earlier.request == 0 || earlier.server != server)) {
      return true;
    }
  }
  return false;
}

std::vector<PushTracker::Message> PushTracker::Poll(Clock::TimePoint now) {
  std::vector<Message> messages;
  next_poll_.reset();
  for (std::size_t push = 0; push < pushes_.size(); ++push) {
    if (pushes_[push].unsent > 0) {
      PollPush(push, now, messages);
    }
  }
  for (Transfer& fetch : fetches_) {
    if (fetch.unsent > 0) {
      PollFetch(fetch, now, messages);
    }
  }
  return messages;
}

void PushTracker::PollPush(std::size_t push, Clock::TimePoint now, std::vector<Message>& messages) {
  Transfer& transfer = pushes_[push];
  Packer<PushMessage> packer(options_.max_message_bytes, last_request_);
  for (std::size_t position = 0; position < transfer.parts.size(); ++position) {
    Part& part = transfer.parts[position];
    if (part.done || part.request != 0) {
      continue;
    }
    const PushedShard& pushed = options_.pushed[position];
    const auto server = Route(pushed.shard, now);
    if (!server.has_value() || Overtakes(push, position, *server)) {
      continue;
    }
    const Shard& shard = layout_.shards()[pushed.shard];
    PushMessage& message =
        packer.Reserve(*server, {pushed.bytes, pushed.operand_bytes, shard.tensor}, messages);
    message.sequence = transfer.id;
    message.job_examples = transfer.job_examples;
    message.updates.push_back({.shard = pushed.shard,
                               .bucket_epoch = map_.buckets[shard.bucket].epoch,
                               .fetched_version = fetched_version_[pushed.shard],
                               .after_loss = part.after_loss});
    MarkSent(transfer, part, message.request, *server);
  }
  packer.Finish(messages);
}

void PushTracker::PollFetch(Transfer& fetch, Clock::TimePoint now, std::vector<Message>& messages) {
  Packer<FetchMessage> packer(options_.max_message_bytes, last_request_);
  for (ShardId shard = 0; shard < fetch.parts.size(); ++shard) {
    Part& part = fetch.parts[shard];
    if (part.done || part.request != 0) {
      continue;
    }
    const auto server = Route(shard, now);
    if (!server.has_value()) {
      continue;
    }
    const std::uint64_t bytes = layout_.shards()[shard].size() * sizeof(float);
    FetchMessage& message = packer.Reserve(*server, {.bytes = bytes}, messages);
    message.fetch = fetch.id;
    message.snapshot = fetch.snapshot;
    message.shards.push_back(shard);
    MarkSent(fetch, part, message.request, *server);
  }
  packer.Finish(messages);
}

void PushTracker::MarkSent(Transfer& transfer,
                           Part& part,
                           std::uint64_t request,
                           ServerSlot server) {
  part.request = request;
  part.server = server;
  part.map_version = map_.version;
  --transfer.unsent;
}

}  // namespace adamant::worker
