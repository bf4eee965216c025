#include "services/worker/rpc/exchange_loop.h"

#include <algorithm>
#include <utility>
#include <vector>

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

ExchangeLoop::ExchangeLoop(const WorkerIdentity& identity,
                           std::uint64_t retain_bytes,
                           const Parts& parts)
    : identity_(identity),
      replica_(parts.replica),
      inbox_(parts.inbox),
      controller_(parts.controller),
      metrics_(parts.metrics),
      clock_(parts.clock),
      exchange_(parts.replica,
                {.max_message_bytes = kMaxMessageBytes, .retain_bytes = retain_bytes}),
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

void ExchangeLoop::OnHold(std::uint64_t checkpoint) {
  inbox_.Post([this, checkpoint] { exchange_.Hold(checkpoint, clock_.Now()); });
}

void ExchangeLoop::OnRelease(std::uint64_t checkpoint) {
  inbox_.Post([this, checkpoint] { exchange_.ReleaseHold(checkpoint); });
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
  std::vector<std::uint64_t> turns = {turns_.load(std::memory_order_relaxed)};
  for (const auto& port : replica_.ports) {
    const ThreadStatistics& thread = port->statistics;
    examples += thread.examples.load(std::memory_order_relaxed);
    correct += thread.correct.load(std::memory_order_relaxed);
    loss_sum += thread.loss_sum.load(std::memory_order_relaxed);
    epoch = std::max(epoch, thread.epoch.load(std::memory_order_relaxed));
    turns.push_back(thread.turns.load(std::memory_order_relaxed));
  }
  progress.set_trained_examples(examples);
  progress.set_loss_sum(loss_sum);
  progress.set_correct(correct);
  progress.set_epoch(epoch);
  for (const DeadUnits& found : replica_.dead_units.Read()) {
    v1::DeadUnits& layer = *progress.add_dead_units();
    layer.set_layer(found.layer);
    layer.set_units(found.units);
    layer.set_dead(found.dead);
  }
  MutexLock lock(mutex_);
  heartbeat.set_busy_seconds(
      std::chrono::duration<double>(busy_.Look(turns, clock_.Now())).count());
  progress.set_pushes_acknowledged(statistics_.pushes_acknowledged);
  progress.set_pushes_refused(statistics_.pushes_refused);
  progress.set_updates_lost(statistics_.updates_lost);
  progress.set_updates_resent(statistics_.updates_resent);
  if (statistics_.weight_growth > 0) {
    progress.set_weight_growth(statistics_.weight_growth);
    progress.set_grown_layer(replica_.layout.parameters()[statistics_.grown_tensor].layer);
  }
  progress.set_retained_bytes(statistics_.retained_bytes);
  progress.set_held_seconds(std::chrono::duration<double>(statistics_.held).count());
  for (const std::uint64_t count : statistics_.staleness.counts()) {
    progress.add_staleness_counts(count);
  }
  for (const std::uint64_t count : statistics_.batches_of_others.counts()) {
    progress.add_batches_of_others(count);
  }
}

void ExchangeLoop::Run() {
  for (;;) {
    turns_.fetch_add(1, std::memory_order_relaxed);
    status_.Update(Turn());
    turns_.fetch_add(1, std::memory_order_relaxed);
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
  if (exchange_.diverged()) {
    controller_.FailDiverged(status_);
  } else if (!status_.ok()) {
    controller_.Fail(status_, /*fatal=*/absl::IsInvalidArgument(status_));
  }
}

absl::Status ExchangeLoop::Turn() {
  for (const Inbox::Task& task : inbox_.Take()) {
    task();
  }
  ADAMANT_RETURN_IF_ERROR(status_);
  ADAMANT_RETURN_IF_ERROR(exchange_.Advance(clock_.Now()));
  resumption_.Look(exchange_.pushes_acknowledged(), clock_.WallNow());
  SendMessages();
  AnswerController();
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

void ExchangeLoop::AnswerController() {
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
  if (const auto held = exchange_.TakeHeld(); held.has_value()) {
    v1::MemberMessage message;
    message.mutable_pushes_held()->set_checkpoint(held->checkpoint);
    message.mutable_pushes_held()->set_sequence(held->sequence);
    controller_.Send(message);
  }
}

// --- Streams

void ExchangeLoop::UpdatePeers(const v1::Membership& membership) {
  if (membership.version() < membership_version_) {
    return;
  }
  if (membership.version() > membership_version_) {
    resumption_.OnDisturbed(exchange_.pushes_acknowledged());
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
  hello.set_job_uid(identity_.job.job_uid);
  hello.set_attempt(identity_.job.attempt);
  hello.set_worker_slot(identity_.slot);
  hello.set_worker_incarnation(identity_.incarnation);
  LinkOptions options = {.address = peer.address,
                         .method = "/adamant.v1.ParameterServer/Exchange",
                         .job = std::to_string(identity_.job.job_uid),
                         .max_message_bytes = kMaxMessageBytes + kHeaderRoom,
                         .hello = request.SerializeAsString(),
                         .seed = MixSeed(identity_.incarnation, identity_.slot, server)};
  LinkHandlers handlers;
  handlers.on_hello = [this](const rpc::IncomingFrame& frame) -> absl::Status {
    v1::ExchangeReply reply;
    if (!reply.ParseFromArray(frame.header().data(), static_cast<int>(frame.header().size()))) {
      return absl::DataLossError("the answer to the hello is no ExchangeReply");
    }
    if (reply.hello().stale()) {
      inbox_.Post([this] {
        status_.Update(absl::AbortedError("another process has taken this worker's slot"));
      });
    }
    return reply.hello().refused().empty()
               ? absl::OkStatus()
               : absl::FailedPreconditionError("refused: " + reply.hello().refused());
  };
  handlers.on_change = [this, server](bool connected) {
    inbox_.Post([this, server, connected] {
      if (!connected) {
        resumption_.OnDisturbed(exchange_.pushes_acknowledged());
      }
      exchange_.OnParameterServer(server, connected);
    });
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
  hello.set_job_uid(identity_.job.job_uid);
  hello.set_attempt(identity_.job.attempt);
  hello.set_worker_slot(identity_.slot);
  hello.set_worker_incarnation(identity_.incarnation);
  hello.set_window(static_cast<std::uint32_t>(replica_.window()));
  const std::uint64_t batch_bytes = replica_.options.batch_size * replica_.example_bytes();
  LinkOptions options = {.address = peer.address,
                         .method = "/adamant.v1.DataServer/Work",
                         .job = std::to_string(identity_.job.job_uid),
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
  work.on_snapshot_wanted = [this](std::uint64_t epoch, std::uint64_t snapshot) {
    inbox_.Post([this, epoch, snapshot] { exchange_.WantSnapshot(epoch, snapshot); });
  };
  work.on_epoch_begun = [this](std::uint64_t epoch) {
    inbox_.Post([this, epoch] { exchange_.OnEpochBegun(epoch); });
  };
  work.on_no_slot = [this](const Lease& lease) {
    inbox_.Post([this, lease] { exchange_.OnNoSlot(lease); });
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

}  // namespace adamant::worker
