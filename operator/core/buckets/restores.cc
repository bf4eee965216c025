#include "operator/core/buckets/restores.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace adamant::controller {

void Restores::OnStored(ServerId from, const StoredBuckets& stored) {
  Report report{.from = from, .previous = stored.previous_incarnation, .buckets = {}};
  for (const StoredBucket& bucket : stored.buckets) {
    report.buckets.insert_or_assign(bucket.bucket, bucket);
  }
  reports_.insert_or_assign(from.slot, std::move(report));
}

bool Restores::HasLostDisk(ServerId server) const {
  const auto report = reports_.find(server.slot);
  return report != reports_.end() && report->second.from.incarnation > server.incarnation &&
         report->second.previous == 0;
}

void Restores::Touch(BucketId bucket, ServerId server) {
  const auto report = reports_.find(server.slot);
  if (report != reports_.end() && report->second.from == server) {
    report->second.buckets.erase(bucket);
  }
}

void Restores::Reject(BucketId bucket, ServerId server, const std::string& why) {
  Report& report = reports_[server.slot];
  report.from = server;
  report.buckets.insert_or_assign(bucket,
                                  StoredBucket{.bucket = bucket, .complete = false, .detail = why});
}

void Restores::OnLost(BucketId bucket, const Configuration& configuration, TimePoint now) {
  const auto [known, first] = losses_.try_emplace(bucket);
  Loss& loss = known->second;
  if (first) {
    loss.replicas = configuration.replicas;
    loss.generation = configuration.generation;
    loss.oldest = configuration.restored_snapshot != 0 ? configuration.generation : 0;
  }
  if (loss.configuration_version != configuration.version) {
    loss.configuration_version = configuration.version;
    loss.since = std::max(loss.since, now);
    loss.awaited.insert(
        loss.awaited.end(), configuration.replicas.begin(), configuration.replicas.end());
  }
}

// What this replica, which lives, or a later process in its slot has reported; nullptr: nothing
// yet.
const Restores::Report* Restores::ReportAfter(ServerId replica) const {
  const auto report = reports_.find(replica.slot);
  return report != reports_.end() && report->second.from.incarnation >= replica.incarnation
             ? &report->second
             : nullptr;
}

// Its folder was that of one of the last replicas.
bool Restores::WasReplica(const Report& report, const Loss& loss) {
  return std::any_of(loss.replicas.begin(), loss.replicas.end(), [&](const ServerId& replica) {
    return replica.slot == report.from.slot && report.previous >= replica.incarnation;
  });
}

absl::StatusOr<std::optional<Restores::Source>> Restores::Choose(BucketId bucket,
                                                                 const Load& load,
                                                                 TimePoint now) const {
  const Loss& loss = losses_.at(bucket);
  const auto reported = [&](const ServerId& replica) { return ReportAfter(replica) != nullptr; };
  const bool all_reported = std::ranges::all_of(loss.awaited, reported);
  if (!all_reported && IsWaiting(bucket, now)) {
    return std::optional<Source>();
  }
  // Who has come back as a later generation may have served it. Else the last replicas have
  // everything but what they had not flushed; with a log, what they have logged comes first.
  const auto rank = [&](const Report& report, const StoredBucket& has) {
    const bool later = has.generation > loss.generation;
    const bool replica = WasReplica(report, loss);
    const bool log = logged_ && replica;
    return std::make_tuple(later,
                           replica,
                           has.generation,
                           log ? has.log_version : ConfigurationVersion(0),
                           log ? has.log_lsn : 0,
                           has.updates,
                           -std::int64_t{load.primaries[report.from.slot]});
  };
  const Report* best = nullptr;
  for (const auto& [slot, report] : reports_) {
    const auto stored = report.buckets.find(bucket);
    if (stored == report.buckets.end() || !stored->second.complete ||
        stored->second.generation < loss.oldest) {
      continue;
    }
    if (best == nullptr || rank(report, stored->second) > rank(*best, best->buckets.at(bucket))) {
      best = &report;
    }
  }
  if (best != nullptr) {
    const StoredBucket& stored = best->buckets.at(bucket);
    return std::optional(
        Source{.server = best->from, .updates = stored.updates, .generation = stored.generation});
  }
  if (!all_reported) {
    return std::optional<Source>();
  }
  return NobodyHas(bucket, loss);
}

absl::Status Restores::NobodyHas(BucketId bucket, const Loss& loss) const {
  std::string message = "bucket " + std::to_string(bucket) +
                        " is lost: the servers that held it have ended, and no disk has all of it";
  std::vector<std::pair<std::string, std::string>> disks;  // what they have, and whose
  for (const ServerId& replica : loss.replicas) {
    const auto& buckets = ReportAfter(replica)->buckets;
    const auto stored = buckets.find(bucket);
    const std::string what = stored == buckets.end() ? "nothing is stored"
                             : stored->second.complete
                                 ? "what is stored is older than what was restored last"
                                 : stored->second.detail;
    const std::string name = ToString(SlotId{Role::kParameterServer, replica.slot});
    const auto same = std::ranges::find(disks, what, &std::pair<std::string, std::string>::first);
    if (same == disks.end()) {
      disks.emplace_back(what, name);
    } else {
      same->second += ", " + name;
    }
  }
  for (const auto& [what, whose] : disks) {
    message.append("; ").append(whose).append(": ").append(what);
  }
  return absl::DataLossError(message);
}

std::optional<DiskWait> Restores::WaitsForDisks() const {
  DiskWait wait;
  for (const auto& [bucket, loss] : losses_) {
    bool waits = false;
    for (const ServerId& replica : loss.awaited) {
      if (ReportAfter(replica) == nullptr) {
        wait.servers.insert(replica.slot);
        waits = true;
      }
    }
    wait.buckets += waits ? 1 : 0;
    wait.until = waits ? std::max(wait.until, loss.since + kTimeout) : wait.until;
  }
  return reports_.empty() || wait.buckets == 0 ? std::nullopt : std::optional(std::move(wait));
}

std::optional<Restores::TimePoint> Restores::NextTimer(TimePoint now) const {
  std::optional<TimePoint> next;
  for (const auto& [bucket, loss] : losses_) {
    const TimePoint until = loss.since + kTimeout;
    if (until > now && (!next || until < *next)) {
      next = until;
    }
  }
  return next;
}

}  // namespace adamant::controller
