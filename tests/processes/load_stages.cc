// The end of a load: what is still to be answered, then what the servers hold.

#include <limits>
#include <utility>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/rpc/frame.h"
#include "tests/processes/load_loop.h"

namespace adamant::processes {
namespace {

constexpr std::chrono::seconds kDrainTimeout{20};
constexpr std::chrono::seconds kCheckTimeout{30};

}  // namespace

void LoadLoop::Advance(TimePoint now) {
  const Stage before = stage_;
  if (stage_ == Stage::kPushing && std::filesystem::exists(identity_.folder / "finish")) {
    stage_ = Stage::kDraining;
  } else if (stage_ == Stage::kDraining &&
             (free_.size() == flights_.size() || now - stage_began_ >= kDrainTimeout)) {
    stage_ = Stage::kChecking;
    requests_.clear();  // reads from before say less
  } else if (stage_ == Stage::kChecking && now - stage_began_ >= kCheckTimeout) {
    for (const ShardId shard : unchecked_) {
      Violate("shard " + std::to_string(shard) + " could not be read");
    }
    unchecked_.clear();
  }
  if (stage_ == Stage::kChecking) {
    std::set<ShardId> asked;
    for (const auto& [id, request] : requests_) {
      asked.insert(request.flight == 0 ? request.shard : std::numeric_limits<ShardId>::max());
    }
    for (const ShardId shard : unchecked_) {
      if (!asked.contains(shard)) {
        Fetch(shard);
      }
    }
    if (unchecked_.empty()) {
      stage_ = Stage::kDone;
      violations_.insert(violations_.end(), book_.violations().begin(), book_.violations().end());
      WriteReport(identity_.folder,
                  {.counts = book_.counts(),
                   .times = times_,
                   .reads = reads_,
                   .rollbacks = rollbacks_,
                   .stale_reads = stale_reads_,
                   .violations = violations_});
    }
  }
  if (stage_ != before) {
    stage_began_ = now;
  }
}

void LoadLoop::CheckValues(ShardId id, const rpc::IncomingFrame& frame) {
  if (unchecked_.erase(id) == 0) {
    return;
  }
  const Shard& shard = layout_.shards()[id];
  std::vector<float> initial(shard.size());
  InitialiseShard(identity_.seed, layout_.parameters()[shard.tensor], shard, initial);
  std::vector<float> values(frame.payload_bytes() / sizeof(float));
  rpc::PayloadReader reader(frame);
  if (!reader.Read(std::as_writable_bytes(std::span(values))).ok()) {
    return Violate("a payload that is no floats");
  }
  for (const std::string& fault : book_.Check(id, initial, values, LoadBook::kMaxFaults)) {
    Violate(fault);
  }
}

}  // namespace adamant::processes
