#include "tests/simulation/job/processes/parameter_server/worker_requests.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/simulation/job/network/frame_to_push.h"

namespace adamant::simulation {

void WorkerRequests::OnHello(StreamId stream, const ExchangeHello& hello) {
  std::optional<WorkerId> writer = hello.writer;
  if (writer.has_value() && world_.Has(Mutation::kNoFencing)) {
    writer->incarnation = 1;
  }
  if (writer.has_value() && (hello.attempt != owner_.attempt() || !core_.Admit(*writer).ok())) {
    owner_.Send(stream, ExchangeHelloReply{.refused = true});
    return world_.network.Close(stream, owner_);
  }
  clients_[stream] = {.writer = writer, .busy = false, .waiting = {}};
  owner_.Send(stream, ExchangeHelloReply{});
}

void WorkerRequests::OnMessage(StreamId stream, Message& message) {
  const auto client = clients_.find(stream);
  if (client == clients_.end()) {
    return;
  }
  if (auto* push = std::get_if<std::shared_ptr<PushFrame>>(&message)) {
    (*push)->Copy();  // the sender may end while it waits, and it is looked at with the answer
  }
  if (client->second.busy) {
    client->second.waiting.push_back(std::move(message));
  } else {
    OnRequest(stream, client->second, message);
  }
}

void WorkerRequests::RefuseWritersBelow(std::span<const Incarnation> incarnations) {
  core_.RefuseWritersBelow(incarnations);
  for (std::uint32_t slot = 0; slot < incarnations.size(); ++slot) {
    Incarnation& from = writers_from_[slot];
    from = std::max(from, incarnations[slot]);
  }
}

void WorkerRequests::OnRequest(StreamId stream, Client& client, const Message& message) {
  if (const auto* push = std::get_if<std::shared_ptr<PushFrame>>(&message)) {
    if (client.writer.has_value()) {
      OnPush(stream, client, *push);
    }
  } else if (const auto* fetch = std::get_if<worker::FetchMessage>(&message)) {
    OnFetch(stream, client, *fetch);
  } else if (const auto* flush = std::get_if<worker::FlushMessage>(&message)) {
    OnFlush(stream, client, *flush);
  }
}

void WorkerRequests::OnPush(StreamId stream,
                            Client& client,
                            const std::shared_ptr<PushFrame>& frame) {
  parameter_server::Push push = ToParameterServer(*client.writer, *frame);
  if (world_.Has(Mutation::kNoDeduplication)) {
    Relabel(push);
  }
  client.busy = true;
  if (world_.Has(Mutation::kOldPushGetsIn)) {
    world_.before.pushes[owner_.start().id.slot].push_back(
        {.attempt = owner_.attempt(), .push = push, .frame = frame});
  }
  const bool given_up = push.writer.incarnation < writers_from_[push.writer.slot];
  core_.Submit(
      push,
      [this, stream, frame, given_up, writer = push.writer, before = world_.updates.generations()](
          const std::vector<parameter_server::ShardAck>& acks) {
        if (given_up) {
          world_.updates.Refused(writer, acks);
        }
        world_.updates.Acknowledged(writer, *frame, ThatCount(acks, before));
        OnPushed(stream, frame, writer, acks);
      });
}

// A primary that stood still may answer when its bucket has come back from another's disk: what it
// says to be applied was before that.
std::vector<parameter_server::ShardAck> WorkerRequests::ThatCount(
    std::vector<parameter_server::ShardAck> acks, const Generations& before) const {
  for (parameter_server::ShardAck& ack : acks) {
    const BucketId bucket = core_.layout().shards()[ack.shard].bucket;
    const auto then = before.find(bucket);
    const auto now = world_.updates.generations().find(bucket);
    if (then != before.end() && now != world_.updates.generations().end() &&
        now->second > then->second && !world_.job.IsPrimary(core_.options().self, bucket)) {
      ack.outcome = parameter_server::PushOutcome::kNotReady;
    }
  }
  return acks;
}

void WorkerRequests::OnPushed(StreamId stream,
                              const std::shared_ptr<PushFrame>& frame,
                              const WorkerId& writer,
                              const std::vector<parameter_server::ShardAck>& acks) {
  if (std::ranges::any_of(acks, [this](const parameter_server::ShardAck& ack) {
        return ack.outcome == parameter_server::PushOutcome::kApplied &&
               world_.job.IsPrimary(core_.options().self,
                                    core_.layout().shards()[ack.shard].bucket);
      })) {
    world_.job.Applied(writer.slot, writer.incarnation);
  }
  owner_.Send(stream, worker::PushReply{.request = frame->header.request, .acks = acks});
  // Not inside the core, from where this may be called.
  owner_.After(microseconds(1), [this, stream] { GoOn(stream); });
}

// Serves what waits behind a push that is answered.
void WorkerRequests::GoOn(StreamId stream) {
  const auto client = clients_.find(stream);
  if (client == clients_.end() || !open_) {
    return;
  }
  client->second.busy = false;
  while (!client->second.busy && !client->second.waiting.empty()) {
    const Message next = std::move(client->second.waiting.front());
    client->second.waiting.pop_front();
    OnRequest(stream, client->second, next);
  }
}

// Whatever comes is the next one.
void WorkerRequests::Relabel(parameter_server::Push& push) {
  const auto now = static_cast<std::uint64_t>(world_.scheduler.Now().time_since_epoch().count());
  for (parameter_server::ShardUpdate& update : push.updates) {
    update.sequence = now + ++relabelled_;
    update.after_loss = true;
  }
}

void WorkerRequests::OnFetch(StreamId stream,
                             const Client& client,
                             const worker::FetchMessage& fetch) {
  const WorkerId* const asking = client.writer.has_value() ? &*client.writer : nullptr;
  const auto values = core_.Fetch(asking, fetch.shards, fetch.snapshot);
  if (!values.ok()) {
    return world_.network.Close(stream, owner_);
  }
  for (const parameter_server::ShardValue& value : *values) {
    if (value.outcome != parameter_server::FetchOutcome::kFound) {
      world_.scheduler.Record(owner_.life->name,
                              "cannot serve a fetch: outcome " +
                                  std::to_string(static_cast<int>(value.outcome)) +
                                  " for shard, snapshot",
                              value.shard,
                              fetch.snapshot);
    } else if (fetch.snapshot == 0) {
      world_.updates.Read(value.shard, value.values);
    }
  }
  owner_.Send(
      stream,
      FetchAnswer{.reply = {.request = fetch.request, .shards = {values->begin(), values->end()}},
                  .values = *values});
}

void WorkerRequests::OnFlush(StreamId stream,
                             const Client& client,
                             const worker::FlushMessage& flush) {
  if (!client.writer.has_value()) {
    return;
  }
  owner_.Send(stream,
              worker::FlushReply{.request = flush.request,
                                 .persisted = core_.RequestFlush(*client.writer, flush.shards)});
}

}  // namespace adamant::simulation
