#include "operator/core/buckets/configurations.h"

#include <algorithm>

#include "services/common/base/failpoint.h"

namespace adamant::controller {

Configurations::Configurations(JobState& state, std::uint32_t min_in_sync)
    : state_(state), min_in_sync_(min_in_sync), service_(state.buckets.size(), Service::kAwaited) {}

std::vector<std::uint64_t> Configurations::Generations() const {
  std::vector<std::uint64_t> generations;
  for (const Bucket& record : state_.buckets) {
    generations.push_back(record.generation);
  }
  return generations;
}

void Configurations::Assign(const std::vector<Holder>& primaries) {
  state_.buckets.clear();
  for (const Holder& primary : primaries) {
    Bucket record;
    record.epoch = 1;
    record.generation = 1;
    record.primary = primary;
    record.members = {primary};
    state_.buckets.push_back(std::move(record));
  }
  service_.assign(primaries.size(), Service::kAwaited);
  changed_ = true;
}

bool Configurations::Allows(const Proposal& proposal) const {
  if (proposal.bucket >= size() || At(proposal.bucket).epoch != proposal.epoch) {
    return false;
  }
  const Bucket& record = At(proposal.bucket);
  switch (proposal.kind) {
    case Proposal::Kind::kTakeOver:
      return proposal.proposer != record.primary && record.Has(proposal.proposer);
    case Proposal::Kind::kDrop:
      return proposal.proposer == record.primary && proposal.subject != record.primary &&
             (!record.Has(proposal.subject) || MayLeave(record, proposal.subject));
    case Proposal::Kind::kAdd:
      return proposal.proposer == record.primary && record.learner == proposal.subject &&
             !record.Has(proposal.subject);
  }
  return false;
}

bool Configurations::MayLeave(const Bucket& record, Holder member) const {
  return record.members.size() > min_in_sync_ ||
         std::find(state_.dead.begin(), state_.dead.end(), member) != state_.dead.end();
}

void Configurations::Apply(const Proposal& proposal) {
  ADAMANT_FAILPOINT("controller/change_record");
  Bucket& record = state_.buckets[proposal.bucket];
  switch (proposal.kind) {
    case Proposal::Kind::kTakeOver:
      if (!proposal.released && MayLeave(record, record.primary)) {
        std::erase(record.members, record.primary);
      }
      record.primary = proposal.proposer;
      service_[proposal.bucket] = Service::kAwaited;
      break;
    case Proposal::Kind::kDrop:
      std::erase(record.members, proposal.subject);
      break;
    case Proposal::Kind::kAdd:
      record.members.push_back(proposal.subject);
      break;
  }
  Change(proposal.bucket);
}

void Configurations::Restore(std::uint32_t bucket, Holder holder, std::uint64_t snapshot) {
  Bucket& record = state_.buckets[bucket];
  ADAMANT_FAILPOINT("controller/restore");
  ++record.generation;
  record.primary = holder;
  record.members = {holder};
  record.restored_snapshot = snapshot;
  service_[bucket] = Service::kRestoring;
  Change(bucket);
}

void Configurations::MakeAnew(std::uint32_t bucket, Holder holder, std::uint64_t snapshot) {
  Bucket& record = state_.buckets[bucket];
  ++record.generation;
  record.created = false;
  record.restored_snapshot = snapshot;
  Reassign(bucket, holder);
}

void Configurations::Reassign(std::uint32_t bucket, Holder holder) {
  Bucket& record = state_.buckets[bucket];
  record.primary = holder;
  record.members = {holder};
  service_[bucket] = Service::kAwaited;
  Change(bucket);
}

// Advice that the change has fulfilled or made void goes with it.
void Configurations::Change(std::uint32_t bucket) {
  Bucket& record = state_.buckets[bucket];
  ++record.epoch;
  if (record.learner && record.Has(*record.learner)) {
    record.learner.reset();
  }
  if (record.leaver && !record.Has(*record.leaver)) {
    record.leaver.reset();
  }
  if (record.heir && (record.heir == record.primary || !record.Has(*record.heir))) {
    record.heir.reset();
  }
  changed_ = true;
}

bool Configurations::OnServing(Holder holder, std::uint32_t bucket, std::uint64_t epoch) {
  if (bucket >= size() || At(bucket).primary != holder || At(bucket).epoch != epoch ||
      IsServed(bucket)) {
    return false;
  }
  service_[bucket] = Service::kServed;
  if (!At(bucket).created) {
    state_.buckets[bucket].created = true;
    changed_ = true;
  }
  return true;
}

void Configurations::OnGone(Holder holder) {
  for (std::uint32_t bucket = 0; bucket < size(); ++bucket) {
    if (At(bucket).primary == holder && IsServed(bucket)) {
      service_[bucket] = Service::kAwaited;
    }
  }
}

void Configurations::SetAdvice(std::uint32_t bucket, const Advice& advice) {
  Bucket& record = state_.buckets[bucket];
  if (record.learner != advice.learner || record.leaver != advice.leaver ||
      record.heir != advice.heir) {
    record.learner = advice.learner;
    record.leaver = advice.leaver;
    record.heir = advice.heir;
    changed_ = true;
  }
}

Load::Load(std::span<const Bucket> records, std::uint32_t servers)
    : primaries(servers), copies(servers) {
  for (const Bucket& record : records) {
    ++primaries[record.primary.slot];
    for (const Holder& member : record.members) {
      ++copies[member.slot];
    }
    if (record.learner) {
      ++copies[record.learner->slot];
    }
  }
}

}  // namespace adamant::controller
