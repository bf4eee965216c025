#include <chrono>
#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/durations.h"
#include "services/common/job/semantics.h"
#include "services/common/job/yaml/scalars.h"

namespace adamant::job {
namespace {

constexpr char kServers[] = "spec.distribution.parameterServers";

class ServerChecker {
 public:
  ServerChecker(const v1::ParameterServers& servers, const Locations& given, Problems& problems)
      : servers_(servers), given_(given), problems_(problems) {}

  void Check() {
    CheckCopies();
    CheckFailover();
    if (servers_.has_buckets() && servers_.buckets() < servers_.count()) {
      const std::string count = std::to_string(servers_.count());
      Report("buckets",
             std::to_string(servers_.buckets()) +
                 (servers_.buckets() == 1 ? " bucket leaves" : " buckets leave") + " some of " +
                 count + " servers without any (allowed: at least " + count + ")");
    }
  }

 private:
  void CheckCopies() {
    const std::string copies = std::to_string(servers_.copies());
    if (servers_.has_count() && servers_.copies() > servers_.count()) {
      Report("copies",
             copies + " copies need at least " + copies + " parameter servers; count is " +
                 std::to_string(servers_.count()));
    }
    if (servers_.has_copies() && servers_.min_in_sync() > servers_.copies()) {
      Report("minInSync",
             std::to_string(servers_.min_in_sync()) + " is more than copies, which is " + copies +
                 ": no update would ever be taken (allowed: at most " + copies + ")");
    }
  }

  /// Clocks may run 10 % wrong: in the worst case the primary's is slow, so that its lease lasts
  /// lease / 0.9, and another server's fast, so that it waits grace / 1.1.
  void CheckFailover() {
    const v1::Failover& failover = servers_.failover();
    const auto beacon = RoundUpToMilliseconds(failover.beacon());
    const auto lease = RoundUpToMilliseconds(failover.lease());
    const auto grace = RoundUpToMilliseconds(failover.grace());
    if (failover.has_lease() && lease < 3 * beacon) {
      Report("failover.lease",
             FormatDuration(lease) + " is shorter than three beacons of " + FormatDuration(beacon) +
                 ": one message lost could end it (allowed: at least " +
                 FormatDuration(3 * beacon) + ")");
    }
    if (failover.has_grace() && grace * 9 < lease * 11) {
      Report("failover.grace",
             FormatDuration(grace) + " is too short for a lease of " + FormatDuration(lease) +
                 ": with clocks that run 10 % wrong the primary could be replaced while it still "
                 "serves (allowed: at least " +
                 FormatDuration((lease * 11 + std::chrono::milliseconds(8)) / 9) + ")");
    }
  }

  void Report(const std::string& field, std::string message) {
    const std::string path = std::string(kServers) + "." + field;
    problems_.Add(Locate(given_, path), path, std::move(message));
  }

  const v1::ParameterServers& servers_;
  const Locations& given_;
  Problems& problems_;
};

}  // namespace

void CompleteServers(v1::JobSpec& spec, const Locations& given) {
  v1::ParameterServers& servers = *spec.mutable_distribution()->mutable_parameter_servers();
  if (servers.has_copies() && !given.contains(std::string(kServers) + ".minInSync")) {
    servers.set_min_in_sync(servers.copies() == 3 ? 2 : 1);
  }
}

void CheckServers(const v1::JobSpec& spec, const Locations& given, Problems& problems) {
  ServerChecker(spec.distribution().parameter_servers(), given, problems).Check();
}

}  // namespace adamant::job
