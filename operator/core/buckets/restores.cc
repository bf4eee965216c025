#include "operator/core/buckets/restores.h"

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace adamant::controller {

void Restores::OnStored(Holder from, const StoredBuckets& stored) {
  Report report{.from = from, .previous = stored.previous_incarnation, .buckets = {}};
  for (const StoredBucket& bucket : stored.buckets) {
    report.buckets.insert_or_assign(bucket.bucket, bucket);
  }
  reports_.insert_or_assign(from.slot, std::move(report));
}

bool Restores::HasLostDisk(Holder holder) const {
  const auto report = reports_.find(holder.slot);
  return report != reports_.end() && report->second.from.incarnation > holder.incarnation &&
         report->second.previous == 0;
}

void Restores::Touch(std::uint32_t bucket, Holder holder) {
  const auto report = reports_.find(holder.slot);
  if (report != reports_.end() && report->second.from == holder) {
    report->second.buckets.erase(bucket);
  }
}

void Restores::Reject(std::uint32_t bucket, Holder holder, const std::string& why) {
  Report& report = reports_[holder.slot];
  report.from = holder;
  report.buckets.insert_or_assign(bucket,
                                  StoredBucket{.bucket = bucket, .complete = false, .detail = why});
}

void Restores::OnLost(std::uint32_t bucket, const Bucket& record, TimePoint now) {
  const auto [known, first] = losses_.try_emplace(bucket);
  Loss& loss = known->second;
  if (first) {
    loss.members = record.members;
    loss.generation = record.generation;
    loss.oldest = record.restored_snapshot != 0 ? record.generation : 0;
  }
  if (loss.epoch != record.epoch) {
    loss.epoch = record.epoch;
    loss.since = std::max(loss.since, now);
    loss.awaited.insert(loss.awaited.end(), record.members.begin(), record.members.end());
  }
}

// What this member, which lives, or a later process in its slot has reported; nullptr: nothing yet.
const Restores::Report* Restores::ReportAfter(Holder member) const {
  const auto report = reports_.find(member.slot);
  return report != reports_.end() && report->second.from.incarnation >= member.incarnation
             ? &report->second
             : nullptr;
}

// Its folder was that of one of the last members.
bool Restores::WasMember(const Report& report, const Loss& loss) {
  return std::any_of(loss.members.begin(), loss.members.end(), [&](const Holder& member) {
    return member.slot == report.from.slot && report.previous >= member.incarnation;
  });
}

absl::StatusOr<std::optional<Restores::Source>> Restores::Choose(std::uint32_t bucket,
                                                                 const Load& load,
                                                                 TimePoint now) const {
  const Loss& loss = losses_.at(bucket);
  const auto reported = [&](const Holder& member) { return ReportAfter(member) != nullptr; };
  const bool all_reported = std::ranges::all_of(loss.awaited, reported);
  if (!all_reported && IsWaiting(bucket, now)) {
    return std::optional<Source>();
  }
  // Who has come back as a later generation may have served it. Else the last members have
  // everything but what they had not flushed; with a log, what they have logged comes first.
  const auto rank = [&](const Report& report, const StoredBucket& has) {
    const bool later = has.generation > loss.generation;
    const bool member = WasMember(report, loss);
    const bool log = logged_ && member;
    return std::make_tuple(later,
                           member,
                           has.generation,
                           log ? has.log_epoch : 0,
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
        Source{.holder = best->from, .updates = stored.updates, .generation = stored.generation});
  }
  if (!all_reported) {
    return std::optional<Source>();
  }
  return NobodyHas(bucket, loss);
}

absl::Status Restores::NobodyHas(std::uint32_t bucket, const Loss& loss) const {
  std::string message = "bucket " + std::to_string(bucket) +
                        " is lost: the servers that held it have ended, and no disk has all of it";
  std::vector<std::pair<std::string, std::string>> disks;  // what they have, and whose
  for (const Holder& member : loss.members) {
    const auto& buckets = ReportAfter(member)->buckets;
    const auto stored = buckets.find(bucket);
    const std::string what = stored == buckets.end() ? "nothing is stored"
                             : stored->second.complete
                                 ? "what is stored is older than the last rollback"
                                 : stored->second.detail;
    const std::string name = ToString(MemberId{Role::kParameterServer, member.slot});
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

std::optional<Restores::TimePoint> Restores::NextTimer(TimePoint now) const {
  std::optional<TimePoint> next;
  for (const auto& [bucket, loss] : losses_) {
    const TimePoint until = loss.since + kPatience;
    if (until > now && (!next || until < *next)) {
      next = until;
    }
  }
  return next;
}

}  // namespace adamant::controller
