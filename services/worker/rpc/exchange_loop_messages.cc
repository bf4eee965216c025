// What ExchangeLoop sends and receives.

#include <algorithm>
#include <chrono>
#include <memory>
#include <span>
#include <utility>
#include <variant>

#include "proto/adamant/v1/data_server.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/worker/rpc/convert.h"
#include "services/worker/rpc/exchange_loop.h"

namespace adamant::worker {

void ExchangeLoop::OnReply(rpc::IncomingFrame frame) {
  auto shared = std::make_shared<rpc::IncomingFrame>(std::move(frame));
  inbox_.Post([this, shared] { status_.Update(HandleReply(*shared)); });
}

absl::Status ExchangeLoop::HandleReply(const rpc::IncomingFrame& frame) {
  v1::ExchangeReply reply;
  if (!reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
    return absl::InternalError("a parameter server sent a header that is no ExchangeReply");
  }
  const TimePoint now = clock_.Now();
  if (reply.has_push()) {
    Observe(reply.id(), metrics_.push_seconds);
    std::uint64_t staleness = 0;
    for (const v1::ShardAck& ack : reply.push().acks()) {
      staleness = std::max(staleness, ack.staleness());
    }
    metrics_.staleness.Observe(static_cast<double>(staleness));
    return exchange_.OnPushReply(PushReplyOf(reply.id(), reply.push()), now);
  }
  if (reply.has_flush()) {
    return exchange_.OnFlushReply(FlushReplyOf(reply.id(), reply.flush()));
  }
  Observe(reply.id(), metrics_.fetch_seconds);
  metrics_.fetch_bytes.Increment(static_cast<double>(frame.payload_bytes()));
  for (const v1::ShardValue& value : reply.fetch().values()) {
    const auto& shards = replica_.layout.shards();
    if (value.outcome() == v1::ShardValue::FOUND &&
        (value.shard() >= shards.size() || value.elements() != shards[value.shard()].size())) {
      return absl::InternalError("a parameter server sent values that do not fit their shard");
    }
  }
  rpc::PayloadReader reader(frame);
  const auto read = [&](std::span<float> values) {
    return reader.Read(std::as_writable_bytes(values));
  };
  return exchange_.OnFetchReply(FetchReplyOf(reply.id(), reply.fetch()), read, now);
}

void ExchangeLoop::Observe(std::uint64_t request, const metrics::Histogram& seconds) {
  if (const auto node = sent_.extract(request); !node.empty()) {
    seconds.Observe(std::chrono::duration<double>(clock_.Now() - node.mapped()).count());
  }
}

void ExchangeLoop::SendMessages() {
  const auto send = [](Peers& peers, ServerSlot server, rpc::OutgoingFrame frame) {
    if (const auto peer = peers.find(server); peer != peers.end()) {
      peer->second.link->Send(std::move(frame));
    }
  };
  for (const Exchange::Message& message : exchange_.TakeMessages()) {
    if (const auto* push = std::get_if<PushMessage>(&message)) {
      rpc::OutgoingFrame frame = FrameOf(*push, exchange_.PayloadOf(*push));
      std::uint64_t bytes = 0;
      for (const rpc::LentBytes& piece : frame.payload) {
        bytes += piece.bytes.size();
      }
      metrics_.push_bytes.Increment(static_cast<double>(bytes));
      sent_[push->request] = clock_.Now();
      send(parameter_servers_, push->server, std::move(frame));
    } else if (const auto* fetch = std::get_if<FetchMessage>(&message)) {
      sent_[fetch->request] = clock_.Now();
      send(parameter_servers_, fetch->server, FrameOf(*fetch));
    } else if (const auto* flush = std::get_if<FlushMessage>(&message)) {
      send(parameter_servers_, flush->server, FrameOf(*flush));
    } else if (const auto* acknowledge = std::get_if<AcknowledgeMessage>(&message)) {
      send(data_servers_, acknowledge->server, FrameOf(*acknowledge));
    } else if (const auto* hand_back = std::get_if<HandBackMessage>(&message)) {
      send(data_servers_, hand_back->server, FrameOf(*hand_back));
    }
  }
}

void ExchangeLoop::KeepLeases() {
  v1::WorkRequest request;
  request.mutable_keep_alive()->set_controller_heard(controller_heard_.load());
  for (auto& [server, peer] : data_servers_) {
    if (peer.link->Idle()) {
      peer.link->Send({.header = request.SerializeAsString(), .payload = {}});
    }
  }
  // Replies to what was sent on streams that broke never come.
  std::erase_if(sent_, [&](const auto& entry) {
    return clock_.Now() - entry.second > std::chrono::minutes(1);
  });
}

void ExchangeLoop::Publish() {
  const ExchangeStatistics statistics = exchange_.statistics();
  metrics_.Update(replica_, statistics, resumption_.timestamp());
  MutexLock lock(mutex_);
  statistics_ = statistics;
}

}  // namespace adamant::worker
