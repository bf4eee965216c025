#include "tests/bench/servers/server_recovery.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "services/common/base/check.h"
#include "services/common/base/clock.h"
#include "services/common/storage/segments/segment_store.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "services/parameter_server/rpc/storage/storage_loop.h"

namespace adamant::bench {
namespace {

using namespace parameter_server;  // NOLINT(google-build-using-namespace)

constexpr std::uint32_t kBuckets = 64;

/// A core over a disk, driven by the thread that measures.
class Server final : private Driver {
 public:
  Server(const std::filesystem::path& folder, std::uint64_t shards, Incarnation incarnation)
      : store_(Open(folder)), core_(Options(shards, incarnation), *store_, clock_, *this) {
    ADAMANT_CHECK(core_.ReadStored(OnThreads(ReadingThreads())).ok(), "the disk can be read");
  }

  /// Makes it the only member of every bucket.
  void Host(ConfigurationVersion version, bool created) {
    const Configuration record{.version = version,
                               .generation = version.value(),
                               .primary = core_.options().self,
                               .replicas = {core_.options().self},
                               .created = created};
    core_.SetConfigurations(std::vector<Configuration>(kBuckets, record), {});
    ADAMANT_CHECK(core_.DoStorage().ok(), "buckets are created or come back");
    const auto roles = core_.Roles();
    ADAMANT_CHECK(std::ranges::count(roles, Replica::Role::kServing) == kBuckets,
                  "every bucket is served");
  }

 private:
  static std::unique_ptr<storage::KvStore> Open(const std::filesystem::path& folder) {
    auto store = storage::SegmentStore::Open(folder);
    ADAMANT_CHECK(store.ok(), "the store opens");
    return *std::move(store);
  }

  static ParameterServerOptions Options(std::uint64_t shards, Incarnation incarnation) {
    return {.job_uid = 1,
            .self = {.slot = 0, .incarnation = incarnation},
            .parameters = {{.name = "w",
                            .layer = "l",
                            .shape = {static_cast<std::int64_t>(shards),
                                      static_cast<std::int64_t>(ShardLayout::kShardElements)}}},
            .buckets = kBuckets,
            .optimisers = {{.location = OptimiserLocation::kWorker}}};
  }

  void SendToPeer(const ServerId& /*to*/, PeerMessage /*message*/) override {}
  void Propose(const Proposal& /*proposal*/) override {}
  void Report(const BucketReport& /*report*/) override {}
  void WantApply() override {}
  void WantStorage() override {}

  std::unique_ptr<storage::KvStore> store_;
  SystemClock clock_;
  ParameterServer core_;
};

}  // namespace

double SecondsOfServerRecovery(const std::filesystem::path& folder,
                               std::uint64_t shards,
                               const std::function<void()>& drop_cache) {
  {
    Server first(folder, shards, 1);
    first.Host(1, false);
  }
  drop_cache();
  const auto start = std::chrono::steady_clock::now();
  Server second(folder, shards, 2);
  second.Host(2, true);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace adamant::bench
