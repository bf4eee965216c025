#include "tests/simulation/job/processes/record_calls.h"

#include <algorithm>
#include <utility>

#include "services/common/tensor/shard_layout.h"

namespace adamant::simulation {

void RecordCalls::Call(const std::string& key, Message request, Done done) {
  Try({.key = key, .request = std::move(request), .done = std::move(done)});
}

std::string RecordCalls::AddressFor(const std::string& key) const {
  const BucketId bucket = BucketOfRecord(key, world_.setup.job.buckets);
  if (bucket >= view_.buckets.size()) {
    return "";
  }
  for (const controller::Member& member : view_.members) {
    if (member.id.role == controller::Role::kParameterServer &&
        member.id.slot == view_.buckets[bucket].primary.slot) {
      return member.address;
    }
  }
  return "";
}

void RecordCalls::Try(Pending call) {
  const std::string address = AddressFor(call.key);
  if (address.empty()) {
    return TryLater(std::move(call));
  }
  const StreamId stream = world_.network.Open(owner_, address, StreamKind::kRecord);
  world_.network.Send(stream, owner_, call.request);
  pending_.emplace(stream, std::move(call));
}

void RecordCalls::TryLater(Pending call) {
  const auto longest = milliseconds(50) * (1U << std::min(call.tries++, 5U));
  world_.scheduler.After(world_.scheduler.Random(milliseconds(10), longest),
                         owner_.life,
                         [this, call = std::move(call)] { Try(call); });
}

void RecordCalls::OnAnswer(StreamId stream, const RecordAnswer& answer) {
  auto node = pending_.extract(stream);
  world_.network.Close(stream, owner_);
  if (node.empty()) {
    return;
  }
  if (answer.outcome == RecordAnswer::Outcome::kTryAgain) {
    return TryLater(std::move(node.mapped()));
  }
  node.mapped().done(answer);
}

void RecordCalls::OnEnded(StreamId stream) {
  if (auto node = pending_.extract(stream); !node.empty()) {
    TryLater(std::move(node.mapped()));
  }
}

}  // namespace adamant::simulation
