// The ways between processes.

#include <utility>
#include <variant>

#include "tests/simulation/replication/processes/cluster.h"

namespace adamant::replication_simulation {
namespace {

constexpr auto kLatest = seconds(8);  // as Network

}  // namespace

std::uint64_t Cluster::Connect(ControlledProcess& replica) {
  if (controller_ == nullptr) {
    return 0;
  }
  connections_[++last_connection_] = {.slot = replica.place(),
                                      .replica = &replica,
                                      .controller = controller_.get(),
                                      .doomed = false};
  return last_connection_;
}

void Cluster::Disconnect(std::uint64_t connection) { Doom(connection, milliseconds(5)); }

// Each end hears of it in its own time.
void Cluster::Doom(std::uint64_t id, Clock::Duration within) {
  Connection& connection = connections_.at(id);
  if (std::exchange(connection.doomed, true)) {
    return;
  }
  const auto when = [&] { return world_.scheduler.Random(microseconds(100), within); };
  world_.scheduler.After(when(), connection.replica->life, [replica = connection.replica, id] {
    replica->OnBroken(id);
  });
  world_.scheduler.After(when(),
                         connection.controller->life,
                         [controller = connection.controller, id] { controller->OnBroken(id); });
}

void Cluster::TellController(std::uint64_t id, controller::MemberMessage message) {
  const Connection& connection = connections_.at(id);
  if (connection.doomed) {
    return;
  }
  if (!world_.network.Send(connection.slot,
                           world_.controller_place(),
                           Channel::kController,
                           connection.controller->life,
                           [this, id, message = std::move(message)] {
                             if (!connections_.at(id).doomed) {
                               connections_.at(id).controller->OnMessage(id, message);
                             }
                           })) {
    Doom(id, seconds(3));
  }
}

void Cluster::SendToMember(std::uint64_t id, const controller::ControllerMessage& message) {
  const Connection& connection = connections_.at(id);
  if (connection.doomed) {
    return;
  }
  if (!world_.network.Send(world_.controller_place(),
                           connection.slot,
                           Channel::kController,
                           connection.replica->life,
                           [replica = connection.replica, id, message] {
                             replica->OnControllerMessage(id, message);
                           })) {
    Doom(id, seconds(3));
  }
}

void Cluster::SendToPeer(const ServerProcess& from,
                         const ps::ServerId& to,
                         ps::PeerMessage message) {
  ServerProcess* const receiver = FindAny(to);
  if (receiver == nullptr) {
    return;
  }
  forked_record_.Sees(from, to, message);
  if (!world_.setup.streams && std::holds_alternative<ps::CopyBegin>(message.kind)) {
    LateBegin& late = late_begins_[{message.bucket, to}];
    if (late.sent + kLatest < world_.scheduler.Now() || late.from == from.server()) {
      late = {.from = from.server(), .message = message, .sent = world_.scheduler.Now()};
    }
  } else if (std::holds_alternative<ps::CopyAck>(message.kind)) {
    DeliverLate(from, message);
  }
  const bool serves = from.Serves(message.bucket);
  const Channel channel = message.bulk() ? Channel::kBulk : Channel::kPeerControl;
  world_.network.Send(from.place(),
                      receiver->place(),
                      channel,
                      receiver->life,
                      [receiver,
                       from = from.server(),
                       serves,
                       said = world_.scheduler.Now(),
                       message = std::move(message)] {
                        receiver->OnPeerMessage(from, message);
                        if (serves) {
                          receiver->HasHeard(from, message, said);
                        }
                      });
}

// Datagrams come twice and late: this one when the learner has a copy of another primary.
void Cluster::DeliverLate(const ServerProcess& learner, const ps::PeerMessage& ack) {
  const auto found = late_begins_.find({ack.bucket, learner.server()});
  const ps::Bucket* const at = learner.bucket(ack.bucket);
  if (found == late_begins_.end() ||
      found->second.message.configuration_version >= ack.configuration_version ||
      at->content().shards.empty()) {
    return;
  }
  const LateBegin late = std::move(found->second);
  late_begins_.erase(found);
  ServerProcess* const receiver = Find(learner.server());
  if (receiver != nullptr && world_.scheduler.Now() < late.sent + kLatest) {
    world_.scheduler.After(world_.scheduler.Random(microseconds(10), milliseconds(5)),
                           receiver->life,
                           [receiver, late] { receiver->OnPeerMessage(late.from, late.message); });
  }
}

void Cluster::SendPush(const Writer& writer, std::uint32_t target, const Push& push) {
  ServerProcess* const receiver = Reach(target);
  if (receiver == nullptr || writer.life->ended) {
    return;
  }
  const Place place = world_.writer_place(push.writer.slot);
  world_.network.Send(
      place, receiver->place(), Channel::kWriter, receiver->life, [receiver, place, push] {
        receiver->OnPush(place, push);
      });
}

void Cluster::SendFetch(const Writer& writer, std::uint32_t target, const Fetch& fetch) {
  ServerProcess* const receiver = Reach(target);
  if (receiver == nullptr || writer.life->ended) {
    return;
  }
  const Place place = world_.writer_place(fetch.writer.slot);
  world_.network.Send(
      place, receiver->place(), Channel::kWriter, receiver->life, [receiver, fetch] {
        receiver->OnFetch(fetch);
      });
}

void Cluster::AnswerWriter(const ServerProcess& from, Place place, PushAnswer answer) {
  Writer* const writer = writers_[place - world_.writer_place(0)].get();
  world_.network.Send(
      from.place(), place, Channel::kWriter, writer->life, [writer, answer = std::move(answer)] {
        writer->OnAnswer(answer);
      });
}

void Cluster::SendRecord(std::uint32_t target, const RecordRequest& request) {
  if (ServerProcess* const receiver = Reach(target)) {
    world_.network.Send(world_.clerk_place(request.from),
                        receiver->place(),
                        Channel::kWriter,
                        receiver->life,
                        [receiver, request] { receiver->OnPlacement(request); });
  }
}

void Cluster::AnswerClerk(const ServerProcess& from, std::uint32_t number, RecordAnswer answer) {
  Clerk* const clerk = clerks_[number].get();
  world_.network.Send(from.place(),
                      world_.clerk_place(number),
                      Channel::kWriter,
                      clerk->life,
                      [clerk, answer = std::move(answer)] { clerk->OnAnswer(answer); });
}

// Mostly right.
std::uint32_t Cluster::GuessPrimary(BucketId bucket) {
  if (controller_ != nullptr && bucket < controller_->records().size() &&
      world_.scheduler.Chance(0.8)) {
    return controller_->records()[bucket].primary.slot;
  }
  return static_cast<std::uint32_t>(world_.scheduler.rng().Below(world_.setup.servers));
}

}  // namespace adamant::replication_simulation
