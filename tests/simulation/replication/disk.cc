#include "tests/simulation/replication/disk.h"

#include <utility>

namespace adamant::replication_simulation {

void Disk::Do(const LifePtr& life,
              std::uint32_t bucket,
              bool sync,
              Change change,
              std::function<void()> done) {
  queue_.push_back({life, bucket, sync, std::move(change), std::move(done)});
  PlanNext();
}

void Disk::PlanNext() {
  if (!planned_ && !queue_.empty()) {
    planned_ = true;
    const auto usual = scheduler_.Random(microseconds(100), milliseconds(5));
    scheduler_.After(usual + latency_, nullptr, [this] {
      planned_ = false;
      DoNext();
    });
  }
}

void Disk::DoNext() {
  if (queue_.empty()) {
    return;
  }
  if (full_) {
    return PlanNext();
  }
  Operation operation = std::move(queue_.front());
  queue_.pop_front();
  if (!operation.life->ended) {
    operation.change(written_[operation.bucket]);
    unsynced_.push_back({operation.bucket, std::move(operation.change)});
    if (operation.sync && !lying_) {
      for (const Unsynced& each : std::exchange(unsynced_, {})) {
        each.change(synced_[each.bucket]);
      }
    }
    scheduler_.After(Clock::Duration(0), operation.life, std::move(operation.done));
  }
  PlanNext();
}

void Disk::LosePower() {
  Drop();
  written_ = synced_;
  unsynced_.clear();
}

}  // namespace adamant::replication_simulation
