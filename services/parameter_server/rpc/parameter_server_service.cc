#include "services/parameter_server/rpc/parameter_server_service.h"

#include <grpcpp/impl/service_type.h>

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/job/job.h"
#include "services/common/job/optimiser_of.h"
#include "services/common/metrics/metrics.h"
#include "services/common/storage/rocksdb_store.h"
#include "services/parameter_server/core/parameter_server.h"
#include "services/parameter_server/rpc/convert.h"
#include "services/parameter_server/rpc/core_gate.h"
#include "services/parameter_server/rpc/exchange.h"
#include "services/parameter_server/rpc/records_service.h"
#include "services/parameter_server/rpc/storage_loop.h"
#include "services/parameter_server/rpc/traffic_metrics.h"

namespace adamant::parameter_server {
namespace {

/// What the controller says about the job, as the core wants it.
absl::StatusOr<ServerOptions> OptionsOf(const v1::Welcome& welcome, std::uint32_t slot) {
  const v1::JobSpec& spec = welcome.job().spec();
  ADAMANT_ASSIGN_OR_RETURN(model::Graph graph, model::BuildGraph(job::NetOf(welcome.job())));
  ADAMANT_ASSIGN_OR_RETURN(auto optimisers, job::OptimisersOf(welcome.job(), graph.parameters));
  const v1::Persistence& persistence = spec.distribution().parameter_servers().persistence();
  const auto interval = std::chrono::seconds(persistence.flush_interval().seconds()) +
                        std::chrono::nanoseconds(persistence.flush_interval().nanos());
  return ServerOptions{
      .job_uid = welcome.job_uid(),
      .slot = slot,
      .writers = static_cast<std::uint32_t>(spec.distribution().workers()),
      .seed = static_cast<std::uint64_t>(spec.run_policy().seed()),
      .parameters = std::move(graph.parameters),
      .buckets = static_cast<std::uint32_t>(spec.distribution().parameter_servers().buckets()),
      .optimisers = std::move(optimisers),
      .flush = {.interval = interval,
                .bytes = static_cast<std::uint64_t>(persistence.flush_bytes())}};
}

class ParameterServerService final : public service::Service {
 public:
  explicit ParameterServerService(const service::ServiceContext& context)
      : context_(context),
        metrics_(context.metrics),
        dirty_bytes_(context.metrics.AddGauge("adamant_parameter_server_dirty_bytes",
                                              "Bytes of shards changed since they were stored.")),
        oldest_(context.metrics.AddGauge("adamant_parameter_server_oldest_unflushed_seconds",
                                         "Age of the oldest change that is not stored.")),
        disk_full_(context.metrics.AddGauge("adamant_parameter_server_disk_full",
                                            "1 while flushing is stopped by a full disk.")),
        records_(MakeRecordsService(
            gate_,
            [this](const absl::Status& status) { context_.controller.Fail(status, false); })),
        storage_loop_(context.controller, context.metrics) {}

  service::Endpoints GetEndpoints() override {
    return {.services = {records_.get()},
            .frame_methods = {{.name = "/adamant.v1.ParameterServer/Exchange",
                               .handler =
                                   [this](rpc::FrameStream& stream) {
                                     return ServeExchange(gate_, metrics_, stream);
                                   }}},
            .max_message_bytes = kMaxExchangeBytes + (std::uint64_t{16} << 20)};
  }

  absl::Status Start(const v1::Welcome& welcome) override {
    ADAMANT_ASSIGN_OR_RETURN(ServerOptions options, OptionsOf(welcome, context_.flags.slot));
    options.flush_due_changed = [this] { storage_loop_.DueChanged(); };
    ADAMANT_ASSIGN_OR_RETURN(store_,
                             storage::RocksDbStore::Open(context_.flags.data_dir / "shards"));
    core_.emplace(std::move(options), *store_, clock_);
    storage_loop_.Start(*core_, clock_);
    gate_.Open(*core_);
    return absl::OkStatus();
  }

  void OnMessage(const v1::ControllerMessage& message) override {
    if (message.has_membership()) {
      core_->SetMap(BucketsOf(message.membership()));
      storage_loop_.Prepare();
    } else if (message.has_take_snapshot()) {
      const v1::TakeSnapshot& take = message.take_snapshot();
      storage_loop_.Take({.id = take.snapshot(),
                          .keep_from = take.keep_from(),
                          .keep = {take.keep().begin(), take.keep().end()}});
    }
  }

  void FillHeartbeat(v1::Heartbeat& heartbeat) override {
    v1::ParameterServerProgress& progress = *heartbeat.mutable_parameter_server();
    const std::chrono::duration<double> oldest = core_->dirty().OldestAge();
    progress.set_updates_applied(core_->updates_applied());
    progress.set_dirty_bytes(core_->dirty().bytes());
    progress.set_oldest_unflushed_seconds(oldest.count());
    progress.set_flushes(core_->flusher().totals().flushes);
    progress.set_alarm(core_->flusher().alarm());
    dirty_bytes_.Set(static_cast<double>(progress.dirty_bytes()));
    oldest_.Set(oldest.count());
    disk_full_.Set(progress.alarm().empty() ? 0 : 1);
  }

  void Stop() override {
    gate_.Close();
    storage_loop_.Stop();
  }

 private:
  const service::ServiceContext context_;
  const TrafficMetrics metrics_;
  const metrics::Gauge dirty_bytes_;
  const metrics::Gauge oldest_;
  const metrics::Gauge disk_full_;
  const SystemClock clock_;
  CoreGate gate_;
  const std::unique_ptr<grpc::Service> records_;
  std::unique_ptr<storage::KvStore> store_;
  std::optional<ParameterServer> core_;
  StorageLoop storage_loop_;  // last: its thread uses the others
};

}  // namespace

absl::StatusOr<std::unique_ptr<service::Service>> MakeParameterServer(
    const service::ServiceContext& context) {
  return std::make_unique<ParameterServerService>(context);
}

}  // namespace adamant::parameter_server
