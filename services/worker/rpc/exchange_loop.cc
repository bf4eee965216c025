#include "services/worker/rpc/exchange_loop.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/data_server.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/log.h"
#include "services/common/base/rng.h"
#include "services/common/base/status_macros.h"
#include "services/worker/rpc/convert.h"

namespace adamant::worker {
namespace {

/// Payload of a push or a fetch reply, unless one shard alone has more.
constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kHeaderRoom = std::uint64_t{1} << 20;

constexpr std::chrono::seconds kUnpinPatience{2};
constexpr std::chrono::seconds kKeepLeasesEvery{1};
constexpr std::chrono::milliseconds kPublishEvery{250};

}  // namespace

ExchangeLoop::ExchangeLoop(const WorkerIdentity& identity, const Parts& parts)
    : identity_(identity),
      replica_(parts.replica),
      inbox_(parts.inbox),
      controller_(parts.controller),
      metrics_(parts.metrics),
      clock_(parts.clock),
      exchange_(parts.replica, kMaxMessageBytes),
      drained_(parts.replica),
      thread_([this] { Run(); }) {}

ExchangeLoop::~ExchangeLoop() {
  {
    MutexLock lock(mutex_);
    quit_ = true;
  }
  inbox_.Wake();
  thread_.join();
  for (Peers* peers : {&parameter_servers_, &data_servers_}) {
    for (auto& [server, peer] : *peers) {
      Disconnect(peer);
    }
  }
  // Transports let go of payloads soon after their streams have ended.
  const TimePoint end = clock_.Now() + kUnpinPatience;
  while (exchange_.Pinned() && clock_.Now() < end) {
    inbox_.Wait(std::chrono::milliseconds(10));
  }
}

void ExchangeLoop::OnMembership(const v1::Membership& membership) {
  inbox_.Post([this, membership] { UpdatePeers(membership); });
}

void ExchangeLoop::OnFlush(std::uint64_t epoch) {
  inbox_.Post([this, epoch] { exchange_.Flush(epoch); });
}

void ExchangeLoop::Stop(std::chrono::milliseconds patience) {
  inbox_.Post([this] { exchange_.Stop(); });
  MutexLock lock(mutex_);
  stopping_ = true;
  const TimePoint end = clock_.Now() + patience;
  while (!ended_ && clock_.Now() < end) {
    ended_changed_.WaitFor(mutex_, end - clock_.Now());
  }
}

void ExchangeLoop::FillHeartbeat(v1::Heartbeat& heartbeat) {
  v1::WorkerProgress& progress = *heartbeat.mutable_worker();
  double loss_sum = 0;
  std::uint64_t examples = 0;
  std::uint64_t correct = 0;
  std::uint64_t epoch = 0;
  for (const auto& port : replica_.ports) {
    const ThreadStatistics& thread = port->statistics;
    examples += thread.examples.load(std::memory_order_relaxed);
    correct += thread.correct.load(std::memory_order_relaxed);
    loss_sum += thread.loss_sum.load(std::memory_order_relaxed);
    epoch = std::max(epoch, thread.epoch.load(std::memory_order_relaxed));
  }
  progress.set_trained_examples(examples);
  progress.set_loss_sum(loss_sum);
  progress.set_correct(correct);
  progress.set_epoch(epoch);
  MutexLock lock(mutex_);
  progress.set_pushes_acknowledged(statistics_.pushes_acknowledged);
  progress.set_pushes_refused(statistics_.pushes_refused);
  progress.set_updates_lost(statistics_.updates_lost);
  for (const std::uint64_t count : statistics_.staleness.counts()) {
    progress.add_staleness_counts(count);
  }
}

void ExchangeLoop::Run() {
  for (;;) {
    status_.Update(Turn());
    const bool stopped = exchange_.Stopped();
    {
      MutexLock lock(mutex_);
      ended_ = !status_.ok() || (stopping_ && stopped);
      if (ended_) {
        ended_changed_.NotifyAll();
      }
      if (ended_ || quit_) {
        break;
      }
    }
    const TimePoint now = clock_.Now();
    TimePoint next = std::min(keep_leases_at_, publish_at_);
    if (const auto advance = exchange_.NextAdvance(); advance.has_value()) {
      next = std::min(next, *advance);
    }
    inbox_.Wait(next - now);
  }
  Publish();
  if (!status_.ok()) {
    controller_.Fail(status_, /*fatal=*/absl::IsInvalidArgument(status_));
  }
}

absl::Status ExchangeLoop::Turn() {
  for (const Inbox::Task& task : inbox_.Take()) {
    task();
  }
  ADAMANT_RETURN_IF_ERROR(status_);
  ADAMANT_RETURN_IF_ERROR(exchange_.Advance(clock_.Now()));
  SendMessages();
  if (const auto epoch = exchange_.TakeFlushed(); epoch.has_value()) {
    // The controller closes the epoch's row with what it knows by then.
    Publish();
    v1::MemberMessage progress;
    FillHeartbeat(*progress.mutable_heartbeat());
    controller_.Send(progress);
    v1::MemberMessage message;
    message.mutable_worker_flushed()->set_epoch(*epoch);
    controller_.Send(message);
  }
  const TimePoint now = clock_.Now();
  if (now >= keep_leases_at_) {
    KeepLeases();
    keep_leases_at_ = now + kKeepLeasesEvery;
  }
  if (now >= publish_at_) {
    Publish();
    publish_at_ = now + kPublishEvery;
  }
  return absl::OkStatus();
}

// --- Streams

void ExchangeLoop::UpdatePeers(const v1::Membership& membership) {
  if (membership.version() < membership_version_) {
    return;
  }
  membership_version_ = membership.version();
  exchange_.OnMap(ClusterMapOf(membership));
  for (const bool is_data_server : {false, true}) {
    Peers& peers = is_data_server ? data_servers_ : parameter_servers_;
    Peers current;
    for (const v1::Member& member : membership.members()) {
      if (member.role() != (is_data_server ? v1::DATA_SERVER : v1::PARAMETER_SERVER)) {
        continue;
      }
      const auto known = peers.find(member.slot());
      if (known != peers.end() && known->second.address == member.address() &&
          known->second.incarnation == member.incarnation()) {
        current[member.slot()] = std::move(known->second);
        peers.erase(known);
      } else {
        Peer& peer = current[member.slot()];
        peer.address = member.address();
        peer.incarnation = member.incarnation();
      }
    }
    for (auto& [server, peer] : peers) {
      Disconnect(peer);
      is_data_server ? exchange_.OnDataServer(server, false)
                     : exchange_.OnParameterServer(server, false);
      if (is_data_server) {
        drained_.Remove(server);
      }
    }
    peers = std::move(current);
    for (auto& [server, peer] : peers) {
      if (peer.link == nullptr) {
        is_data_server ? ConnectDataServer(server, peer) : ConnectParameterServer(server, peer);
      }
    }
  }
}

void ExchangeLoop::Disconnect(Peer& peer) {
  if (peer.receiver != nullptr) {
    peer.receiver->Stop();
  }
  peer.link.reset();
  peer.receiver.reset();
}

void ExchangeLoop::ConnectParameterServer(ServerSlot server, Peer& peer) {
  v1::ExchangeRequest request;
  v1::ExchangeHello& hello = *request.mutable_hello();
  hello.set_format_version(1);
  hello.set_job_uid(identity_.job_uid);
  hello.set_worker_slot(identity_.slot);
  hello.set_worker_incarnation(identity_.incarnation);
  LinkOptions options = {.address = peer.address,
                         .method = "/adamant.v1.ParameterServer/Exchange",
                         .max_message_bytes = kMaxMessageBytes + kHeaderRoom,
                         .hello = request.SerializeAsString(),
                         .seed = MixSeed(identity_.incarnation, identity_.slot, server)};
  LinkHandlers handlers;
  handlers.on_hello = [](const rpc::IncomingFrame& frame) -> absl::Status {
    v1::ExchangeReply reply;
    if (!reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
      return absl::DataLossError("the answer to the hello is no ExchangeReply");
    }
    return reply.hello().refused().empty()
               ? absl::OkStatus()
               : absl::FailedPreconditionError("refused: " + reply.hello().refused());
  };
  handlers.on_change = [this, server](bool connected) {
    inbox_.Post([this, server, connected] { exchange_.OnParameterServer(server, connected); });
  };
  handlers.on_frame = [this](rpc::IncomingFrame frame) {
    OnReply(std::move(frame));
    return absl::OkStatus();
  };
  peer.link = std::make_unique<Link>(std::move(options), std::move(handlers));
}

void ExchangeLoop::ConnectDataServer(ServerSlot server, Peer& peer) {
  v1::WorkRequest request;
  v1::WorkHello& hello = *request.mutable_hello();
  hello.set_format_version(1);
  hello.set_job_uid(identity_.job_uid);
  hello.set_worker_slot(identity_.slot);
  hello.set_worker_incarnation(identity_.incarnation);
  hello.set_window(static_cast<std::uint32_t>(replica_.window()));
  const std::uint64_t batch_bytes = replica_.options.batch_size * replica_.example_bytes();
  LinkOptions options = {.address = peer.address,
                         .method = "/adamant.v1.DataServer/Work",
                         .max_message_bytes = batch_bytes + kHeaderRoom,
                         .hello = request.SerializeAsString(),
                         .seed = MixSeed(identity_.incarnation, identity_.slot, server)};
  WorkHandlers work;
  work.on_acknowledged = [this](std::vector<Lease> leases) {
    inbox_.Post([this, leases = std::move(leases)] { exchange_.OnAcknowledged(leases); });
  };
  work.on_epoch_closed = [this](std::uint64_t epoch) {
    inbox_.Post([this, epoch] { exchange_.OnEpochClosed(epoch); });
  };
  work.on_snapshot_wanted = [this](std::uint64_t snapshot) {
    inbox_.Post([this, snapshot] { exchange_.WantSnapshot(snapshot); });
  };
  peer.receiver = std::make_unique<WorkReceiver>(server, replica_, drained_, std::move(work));
  WorkReceiver& receiver = *peer.receiver;
  LinkHandlers handlers;
  handlers.on_hello = [this, &receiver](const rpc::IncomingFrame& frame) {
    const absl::Status status = receiver.OnHello(frame);
    if (absl::IsInvalidArgument(status)) {
      inbox_.Post([this, status] { status_.Update(status); });
    }
    return status;
  };
  handlers.on_change = [this, server, &receiver](bool connected) {
    receiver.OnChange(connected);
    inbox_.Post([this, server, connected] { exchange_.OnDataServer(server, connected); });
  };
  handlers.on_frame = [&receiver](const rpc::IncomingFrame& frame) {
    return receiver.OnFrame(frame);
  };
  peer.link = std::make_unique<Link>(std::move(options), std::move(handlers));
}

// --- Messages

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
    } else if (const auto* acknowledge = std::get_if<AcknowledgeMessage>(&message)) {
      send(data_servers_, acknowledge->server, FrameOf(*acknowledge));
    } else if (const auto* hand_back = std::get_if<HandBackMessage>(&message)) {
      send(data_servers_, hand_back->server, FrameOf(*hand_back));
    }
  }
}

void ExchangeLoop::KeepLeases() {
  v1::WorkRequest request;
  request.mutable_keep_alive();
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
  metrics_.Update(replica_, statistics);
  MutexLock lock(mutex_);
  statistics_ = statistics;
}

}  // namespace adamant::worker
