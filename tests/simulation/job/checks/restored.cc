#include "tests/simulation/job/checks/restored.h"

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/serving/parameter_server.h"

namespace adamant::simulation {
namespace {

/// A store that is only read: what is written goes nowhere.
class ReadOnly final : public storage::KvStore {
 public:
  explicit ReadOnly(const storage::KvStore& store) : store_(store) {}

  absl::StatusOr<std::string> Get(std::string_view key) const override { return store_.Get(key); }
  absl::Status Write(const std::vector<storage::Change>& /*changes*/) override { return {}; }
  absl::Status WriteLogged(const std::vector<storage::Change>& /*changes*/) override { return {}; }
  absl::Status WriteLazily(const std::vector<storage::Change>& /*changes*/) override { return {}; }
  absl::Status Flush() override { return {}; }
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override {
    return store_.Scan(prefix, visit);
  }

 private:
  const storage::KvStore& store_;
};

/// Nobody is there to be told anything.
class Alone final : public parameter_server::Driver {
 public:
  void SendToPeer(const parameter_server::ServerId& /*to*/,
                  parameter_server::PeerMessage /*message*/) override {}
  void Propose(const parameter_server::Proposal& /*proposal*/) override {}
  void Report(const parameter_server::BucketReport& report) override {
    if (report.lost) {
      problem = report.detail;
    }
  }
  void WantApply() override {}
  void WantStorage() override {}

  std::string problem;
};

}  // namespace

absl::StatusOr<RestoredShards> Restore(const Setup& setup,
                                       const Clock& clock,
                                       std::uint64_t job_uid,
                                       const storage::KvStore& disk,
                                       std::span<const BucketId> buckets,
                                       std::uint64_t snapshot) {
  constexpr parameter_server::ServerId kSelf{.slot = 0, .incarnation = 1};
  constexpr std::uint64_t kLater = 1 << 20;  // than any epoch and generation
  ReadOnly store(disk);
  Alone driver;
  parameter_server::ParameterServerOptions options = setup.ParameterServerOptions(kSelf, job_uid);
  options.min_in_sync = 1;
  parameter_server::ParameterServer server(std::move(options), store, clock, driver);
  std::vector<parameter_server::Configuration> map(setup.job.buckets);
  for (const BucketId bucket : buckets) {
    map[bucket] = {.version = kLater,
                   .generation = kLater,
                   .primary = kSelf,
                   .replicas = {kSelf},
                   .created = true,
                   .restored_snapshot = snapshot};
  }
  server.SetConfigurations(map, {});
  ADAMANT_RETURN_IF_ERROR(server.DoStorage());
  server.ApplyCommitted();
  if (!driver.problem.empty()) {
    return absl::DataLossError(driver.problem);
  }
  RestoredShards restored;
  for (const Shard& shard : server.layout().shards()) {
    if (map[shard.bucket].version == 0) {
      continue;
    }
    ADAMANT_ASSIGN_OR_RETURN(const auto values,
                             server.Fetch(nullptr, std::vector<ShardId>{shard.id}, 0));
    if (values.front().outcome != parameter_server::FetchOutcome::kFound) {
      return absl::DataLossError("shard " + std::to_string(shard.id) + " cannot be served");
    }
    restored[shard.id].assign(values.front().values.begin(), values.front().values.end());
  }
  return restored;
}

}  // namespace adamant::simulation
