#include "services/parameter_server/rpc/parameter_server_service.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/busy_meter.h"
#include "services/common/base/clock.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/job/replication_of.h"
#include "services/common/metrics/metrics.h"
#include "services/common/service/member_generations.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/controller/cluster_view.h"
#include "services/parameter_server/rpc/controller/core_driver.h"
#include "services/parameter_server/rpc/controller/replication_metrics.h"
#include "services/parameter_server/rpc/gate/core_gate.h"
#include "services/parameter_server/rpc/peers/deliver.h"
#include "services/parameter_server/rpc/peers/peer_metrics.h"
#include "services/parameter_server/rpc/peers/peers.h"
#include "services/parameter_server/rpc/record_methods.h"
#include "services/parameter_server/rpc/storage/shard_folder.h"
#include "services/parameter_server/rpc/storage/storage_loop.h"
#include "services/parameter_server/rpc/storage/watched_store.h"
#include "services/parameter_server/rpc/workers/exchange.h"
#include "services/parameter_server/rpc/workers/traffic_metrics.h"

namespace adamant::parameter_server {
namespace {

// spec.distribution.workers may rise while the job runs, up to what the schema allows.
constexpr std::uint32_t kMostWorkers = 1024;

// How often the core is told that time passes.
Clock::Duration TickOf(const ReplicationTimes& times) {
  return std::clamp<Clock::Duration>(
      times.beacon / 10, std::chrono::milliseconds(1), std::chrono::milliseconds(50));
}

FlushLimits LimitsOf(const job::Replication& replication) {
  if (replication.mode == PersistenceMode::kNone) {  // only snapshots are written
    return {.interval = std::chrono::hours(24 * 365),
            .bytes = std::numeric_limits<std::uint64_t>::max()};
  }
  return {.interval = replication.flush_interval, .bytes = replication.flush_bytes};
}

/// What the controller says about the job, as the core wants it.
absl::StatusOr<ParameterServerOptions> OptionsOf(const v1::Welcome& welcome, std::uint32_t slot) {
  const v1::JobSpec& spec = welcome.job().spec();
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(job::NetOf(welcome.job())));
  ADAMANT_ASSIGN_OR_RETURN(auto optimisers, job::OptimisersOf(welcome.job(), graph.parameters));
  const job::Replication replication = job::ReplicationOf(welcome.job());
  return ParameterServerOptions{
      .job_uid = welcome.job_uid(),
      .attempt = AttemptOf(welcome.attempt()),
      .self = {.slot = slot, .incarnation = welcome.incarnation()},
      .writers = kMostWorkers,
      .seed = static_cast<std::uint64_t>(spec.run_policy().seed()),
      .parameters = std::move(graph.parameters),
      .buckets = static_cast<std::uint32_t>(spec.distribution().parameter_servers().buckets()),
      .optimisers = std::move(optimisers),
      .times = {.beacon = replication.beacon,
                .lease = replication.lease,
                .grace = replication.grace},
      .min_in_sync = replication.min_in_sync,
      .mode = replication.mode,
      .flush = LimitsOf(replication)};
}

class ParameterServerService final : public service::Service {
 public:
  explicit ParameterServerService(const service::ServiceContext& context)
      : context_(context),
        traffic_metrics_(context.metrics),
        peer_metrics_(context.metrics),
        replication_metrics_(context.metrics),
        dirty_bytes_(context.metrics.AddGauge("adamant_parameter_server_dirty_bytes",
                                              "Bytes of shards changed since they were stored.")),
        oldest_(context.metrics.AddGauge("adamant_parameter_server_oldest_unflushed_seconds",
                                         "Age of the oldest change that is not stored.")),
        disk_full_(context.metrics.AddGauge("adamant_parameter_server_disk_full",
                                            "1 while storing is stopped by a full disk.")),
        storage_loop_(context.controller, context.metrics) {}

  service::Endpoints GetEndpoints() override {
    return {
        .frame_methods = {{.name = "/adamant.v1.ParameterServer/Exchange",
                           .handler =
                               [this](rpc::FrameStream& stream) {
                                 return ServeExchange(gate_, members_, traffic_metrics_, stream);
                               },
                           .job_of = JobOfExchange}},
        .unary_methods = RecordMethods(
            gate_, members_, [this](std::uint32_t part) { return view_->OwnerOf(part); }),
        .replication_methods = {{.name = kDeliverMethod,
                                 .handler =
                                     [this](rpc::FrameStream& stream) {
                                       return ServeDeliver(gate_, members_, peer_metrics_, stream);
                                     },
                                 .job_of = JobOfDeliver}},
        .max_message_bytes = std::max(kMaxExchangeBytes, kMaxMessageBatchBytes)};
  }

  absl::Status Start(const v1::Welcome& welcome) override {
    ADAMANT_ASSIGN_OR_RETURN(ParameterServerOptions options,
                             OptionsOf(welcome, context_.flags.slot));
    const std::filesystem::path folder = context_.flags.data_dir / "shards";
    const auto open = [&] { return OpenShardFolder(folder); };
    ADAMANT_ASSIGN_OR_RETURN(shards_,
                             OpenWithRoom(open, context_.controller, std::chrono::seconds(1)));
    options.damage = shards_.damage;
    options.folder = folder.string();
    beacon_ = options.times.beacon;
    const Clock::Duration tick = TickOf(options.times);
    peers_.emplace(
        Peers::Options{
            .job_uid = options.job_uid,
            .self = options.self,
            .security = context_.security,
            .on_connected = [this](const ServerId& peer) { core_->OnPeerConnected(peer); }},
        peer_metrics_);
    driver_.emplace(CoreDriver::Links{.peers = *peers_,
                                      .controller = context_.controller,
                                      .want_storage = [this] { storage_loop_.Want(); }},
                    replication_metrics_);
    watched_store_.emplace(*shards_.store, [this] { storage_loop_.GoOn(); });
    core_.emplace(std::move(options), *watched_store_, clock_, *driver_);
    view_.emplace(
        ClusterView::Links{.core = *core_, .peers = *peers_, .controller = context_.controller},
        replication_metrics_);
    driver_->Start(*core_, tick);
    storage_loop_.Start(*core_, clock_, [this] {
      gate_.Open(*core_);
      view_->OnStored();
    });
    return absl::OkStatus();
  }

  void OnMessage(const protocol::ControllerMessage& message) override {
    if (const auto* view = std::get_if<protocol::Membership>(&message)) {
      members_.SetAll(*view);
      view_->OnMembership(*view);
    } else if (const auto* take = std::get_if<protocol::TakeSnapshot>(&message)) {
      core_->RefuseWritersBelow(take->writers_from);
      storage_loop_.Take(*take);
    }
  }

  void OnRejoined() override { view_->OnRejoined(); }

  void BeginDrain() override {
    hands_over_ = view_->HasSuccessors();
    context_.controller.Send(protocol::Draining{});
  }

  // The successors need its word, as a member, to serve at once: it stays for their first beacons.
  bool Drained() override {
    if (!hands_over_) {
      return true;
    }
    if (view_->HasSuccessors()) {
      handed_over_at_.reset();
      return false;
    }
    if (!handed_over_at_.has_value()) {
      handed_over_at_ = clock_.Now();
    }
    return clock_.Now() - *handed_over_at_ >= 2 * beacon_;
  }

  protocol::Heartbeat MakeHeartbeat() override {
    const std::chrono::duration<double> oldest = core_->flusher().dirty().OldestAge();
    protocol::ParameterServerProgress progress{.updates_applied = core_->updates_applied(),
                                               .dirty_bytes = core_->flusher().dirty().bytes(),
                                               .oldest_unflushed_seconds = oldest.count(),
                                               .flushes = core_->flusher().totals().flushes,
                                               .alarm = core_->alarm(),
                                               .damages = core_->scrubber().damages(),
                                               .buckets = core_->Progress()};
    replication_metrics_.SetProgress(progress.buckets);
    dirty_bytes_.Set(static_cast<double>(progress.dirty_bytes));
    oldest_.Set(oldest.count());
    disk_full_.Set(progress.alarm.empty() ? 0 : 1);
    const std::chrono::duration<double> busy = BusyTime();
    return {.progress = std::move(progress), .busy_seconds = busy.count()};
  }

  void Stop() override {
    gate_.Close();
    driver_->Stop();
    peers_->Stop();
    core_->ApplyCommitted();
    storage_loop_.Stop();
  }

 private:
  // Of the thread that has been at one piece of work for longest.
  Clock::Duration BusyTime() {
    std::vector<std::uint64_t> turns = driver_->Turns();
    const std::vector<std::uint64_t> inside = gate_.Turns();
    turns.insert(turns.end(), inside.begin(), inside.end());
    // Whoever applies updates also applies those that others hand in meanwhile, and may stay at it.
    for (std::uint64_t& turn : turns) {
      turn += 2 * core_->updates_applied();
    }
    turns.insert(turns.begin(), storage_loop_.turns());
    return busy_.Look(turns, clock_.Now());
  }

  const service::ServiceContext context_;
  const TrafficMetrics traffic_metrics_;
  const PeerMetrics peer_metrics_;
  const ReplicationMetrics replication_metrics_;
  const metrics::Gauge dirty_bytes_;
  const metrics::Gauge oldest_;
  const metrics::Gauge disk_full_;
  const SystemClock clock_;
  CoreGate gate_;
  service::MemberGenerations members_;

  // From Start on.
  ShardFolder shards_;
  std::optional<WatchedStore> watched_store_;
  std::optional<Peers> peers_;
  std::optional<CoreDriver> driver_;
  std::optional<ParameterServer> core_;
  std::optional<ClusterView> view_;
  Clock::Duration beacon_{0};
  BusyMeter busy_;

  // From BeginDrain on.
  bool hands_over_ = false;  // there was something to hand over
  std::optional<Clock::TimePoint> handed_over_at_;

  StorageLoop storage_loop_;  // last: its thread uses the others
};

}  // namespace

absl::StatusOr<std::unique_ptr<service::Service>> MakeParameterServer(
    const service::ServiceContext& context) {
  return std::make_unique<ParameterServerService>(context);
}

}  // namespace adamant::parameter_server
