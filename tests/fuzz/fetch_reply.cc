// What a parameter server answers to a worker's fetch: one frame.

#include <span>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/check.h"
#include "services/common/codec/updates.h"
#include "services/parameter_server/rpc/messages/frame_codec.h"
#include "services/worker/core/sync/fetches/fetch_reader.h"
#include "services/worker/core/sync/fetches/fetch_tracker.h"
#include "tests/fuzz/frames.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/silent_protobuf.h"

namespace adamant::fuzz {
namespace {

constexpr std::uint64_t kMaxMessageBytes = 1 << 20;

/// A worker that has asked server 0 for both shards.
class Fetch {
 public:
  Fetch()
      : layout_(SmallLayer(), 2), routes_(layout_), tracker_(kMaxMessageBytes, layout_, routes_) {
    routes_.OnPlacement({.version = 1, .buckets = {{.version = 1}, {.version = 1}}});
    routes_.OnConnected(0);
    fetch_ = tracker_.Fetch(0);
    request_ = tracker_.Poll({}).at(0).request;
  }

  [[nodiscard]] std::uint64_t request() const { return request_; }

  // True if it has all values.
  bool Take(const v1::ExchangeReply& reply, const rpc::IncomingFrame& frame) {
    const worker::FetchReply decoded{.request = reply.id(), .shards = codec::Decode(reply.fetch())};
    const auto progress = tracker_.OnReply(decoded, {});
    if (!progress.ok() || progress->fresh.empty()) {
      return false;
    }
    rpc::PayloadReader payload(frame);
    const auto read = [&](std::span<float> values) {
      return payload.Read(std::as_writable_bytes(values));
    };
    std::vector<float> values(layout_.elements());
    worker::FetchReader reader(layout_);
    return reader.Read(decoded, progress->fresh, read, values, [](const worker::FetchedShard&) {})
               .ok() &&
           progress->complete && tracker_.Versions(fetch_).size() == layout_.shards().size();
  }

 private:
  const ShardLayout layout_;
  worker::Routes routes_;
  worker::FetchTracker tracker_;
  worker::FetchId fetch_ = 0;
  std::uint64_t request_ = 0;
};

}  // namespace

std::vector<std::string> Seeds() {
  static const std::vector<float> numbers(12, 0.25F);
  std::vector<parameter_server::ShardValue> values(2);
  for (std::size_t i = 0; i < 2; ++i) {
    values[i].shard = i;
    values[i].version = 5;
    values[i].configuration_version = 1;
    values[i].values = std::span(numbers).first(i == 0 ? 12 : 4);
  }
  v1::ExchangeReply reply;
  reply.set_id(Fetch().request());
  rpc::OutgoingFrame frame;
  EncodeValues(values, *reply.mutable_fetch(), frame.payload);
  frame.header = reply.SerializeAsString();
  return {BytesOf(frame)};
}

bool Try(std::string_view input) {
  const auto frame = FrameOf(input);
  v1::ExchangeReply reply;
  return frame.ok() && reply.ParseFromString(std::string(frame->header())) &&
         Fetch().Take(reply, *frame);
}

}  // namespace adamant::fuzz
