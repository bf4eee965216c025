#include "tests/bench/stale/virtual_fleet.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "services/common/base/status_macros.h"

namespace adamant::bench {
namespace {

void Add(const worker::SynchroniserStatistics& statistics, StalenessCounts& counts) {
  std::ranges::transform(
      counts, statistics.batches_of_others.counts(), counts.begin(), std::plus<>());
}

}  // namespace

VirtualFleet::VirtualFleet(const VirtualJob& job,
                           std::function<VirtualWorkerOptions(std::uint32_t)> options_of)
    : job_(job), options_of_(std::move(options_of)) {}

absl::Status VirtualFleet::Scale(std::uint32_t workers) {
  placement_ = job_.servers.PlacementOf(workers);
  incarnations_.resize(std::max<std::size_t>(incarnations_.size(), workers));
  const auto stay = std::stable_partition(
      workers_.begin(), workers_.end(), [&](const auto& each) { return each->slot() < workers; });
  std::move(stay, workers_.end(), std::back_inserter(leaving_));
  const auto stopping = leaving_.end() - (workers_.end() - stay);
  workers_.erase(stay, workers_.end());
  for (const auto& worker : workers_) {
    worker->OnPlacement(placement_);
  }
  std::for_each(stopping, leaving_.end(), [&](const auto& worker) {
    worker->OnPlacement(placement_);
    worker->Stop();
  });
  return StartMissing();
}

bool VirtualFleet::IsTaken(std::uint32_t slot) const {
  const auto is_here = [&](const auto& worker) { return worker->slot() == slot; };
  return std::ranges::any_of(workers_, is_here) || std::ranges::any_of(leaving_, is_here);
}

absl::Status VirtualFleet::StartMissing() {
  for (std::uint32_t slot = 0; slot < placement_.workers; ++slot) {
    if (IsTaken(slot)) {
      continue;
    }
    VirtualWorkerOptions options = options_of_(slot);
    options.self = {.slot = slot, .incarnation = ++incarnations_[slot]};
    ADAMANT_ASSIGN_OR_RETURN(workers_.emplace_back(), VirtualWorker::Create(options, job_));
    workers_.back()->OnPlacement(placement_);
    workers_.back()->Wake();
  }
  return absl::OkStatus();
}

absl::Status VirtualFleet::Advance() {
  for (const auto* workers : {&workers_, &leaving_}) {
    for (const auto& worker : *workers) {
      ADAMANT_RETURN_IF_ERROR(worker->status());
    }
  }
  const auto gone = std::remove_if(leaving_.begin(), leaving_.end(), [&](const auto& worker) {
    if (worker->gone()) {
      Add(worker->statistics(), left_);
    }
    return worker->gone();
  });
  if (gone == leaving_.end()) {
    return absl::OkStatus();
  }
  leaving_.erase(gone, leaving_.end());
  return StartMissing();
}

void VirtualFleet::WakeAll() {
  for (const auto* workers : {&workers_, &leaving_}) {
    for (const auto& worker : *workers) {
      worker->Wake();
    }
  }
}

void VirtualFleet::Tell(Moment& now) const {
  now.staleness = left_;
  for (const auto& worker : leaving_) {
    Add(worker->statistics(), now.staleness);
  }
  for (const auto& worker : workers_) {
    Add(now.workers.emplace_back(worker->statistics()), now.staleness);
  }
}

}  // namespace adamant::bench
