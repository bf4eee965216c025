#include "services/data_server/core/worker_table.h"

#include <algorithm>

namespace adamant::data_server {
namespace {

constexpr std::uint32_t kMaxWindow = 65536;

}  // namespace

WorkerTable::WorkerTable(Clock::Duration lease_time, std::uint64_t first_lease)
    : lease_time_(lease_time), next_lease_(first_lease) {}

std::string WorkerTable::Admit(const Hello& hello,
                               Clock::TimePoint now,
                               std::vector<BatchId>& lost) {
  if (hello.window == 0 || hello.window > kMaxWindow) {
    return "the window must be 1 to " + std::to_string(kMaxWindow) + " batches, found " +
           std::to_string(hello.window);
  }
  Incarnation& newest = newest_[hello.worker.slot];
  if (hello.worker.incarnation < newest) {
    return "incarnation " + std::to_string(hello.worker.incarnation) + " of worker " +
           std::to_string(hello.worker.slot) + " was replaced by incarnation " +
           std::to_string(newest);
  }
  newest = hello.worker.incarnation;
  Worker& worker = workers_[hello.worker.slot];
  if (worker.id != hello.worker) {
    EndAll(worker, false, lost);
    worker = Worker{};
  }
  for (auto& [id, lease] : worker.leases) {
    lease.old_stream = true;
  }
  worker.id = hello.worker;
  worker.window = hello.window;
  worker.taken = 0;
  worker.connected = true;
  worker.told_drained = false;
  worker.last_heard = now;
  worker.old_leases_end = now + lease_time_;
  return "";
}

WorkerTable::Worker* WorkerTable::Find(WorkerId id) {
  const auto it = workers_.find(id.slot);
  return it != workers_.end() && it->second.id == id ? &it->second : nullptr;
}

std::uint64_t WorkerTable::Grant(Worker& worker, BatchId batch) {
  worker.leases.emplace(next_lease_, Held{.batch = batch});
  ++worker.taken;
  return next_lease_++;
}

bool WorkerTable::CanTake(const Worker& worker, Clock::TimePoint now) const {
  return worker.connected && worker.taken < worker.window && now - worker.last_heard < lease_time_;
}

std::optional<WorkerTable::Held> WorkerTable::Release(Worker& worker, const Lease& lease) {
  const auto it = worker.leases.find(lease.id);
  if (it == worker.leases.end() || it->second.batch != lease.batch) {
    return std::nullopt;
  }
  const Held held = it->second;
  Remove(worker, it);
  return held;
}

void WorkerTable::Expire(Clock::TimePoint now, std::vector<BatchId>& lost) {
  for (auto& [slot, worker] : workers_) {
    if (now - worker.last_heard >= lease_time_) {
      EndAll(worker, false, lost);
    } else if (now >= worker.old_leases_end) {
      EndAll(worker, true, lost);
    }
  }
}

std::vector<WorkerId> WorkerTable::Retain(const std::vector<WorkerId>& members,
                                          std::vector<BatchId>& lost) {
  for (const WorkerId& member : members) {
    Incarnation& newest = newest_[member.slot];
    newest = std::max(newest, member.incarnation);
  }
  std::vector<WorkerId> removed;
  for (auto it = workers_.begin(); it != workers_.end();) {
    Worker& worker = it->second;
    const bool listed = std::find(members.begin(), members.end(), worker.id) != members.end();
    const bool replaced = newest_[worker.id.slot] > worker.id.incarnation;
    // A worker that said Hello before any view listed it is waited for: the view may be older.
    if (listed || (!worker.in_membership && !replaced)) {
      worker.in_membership = listed;
      ++it;
      continue;
    }
    EndAll(worker, false, lost);
    removed.push_back(worker.id);
    it = workers_.erase(it);
  }
  return removed;
}

std::optional<Clock::TimePoint> WorkerTable::NextExpiry() const {
  std::optional<Clock::TimePoint> next;
  for (const auto& [slot, worker] : workers_) {
    for (const auto& [id, lease] : worker.leases) {
      if (!lease.ended) {
        const Clock::TimePoint silent = worker.last_heard + lease_time_;
        const Clock::TimePoint end =
            lease.old_stream ? std::min(silent, worker.old_leases_end) : silent;
        next = next ? std::min(*next, end) : end;
      }
    }
  }
  return next;
}

WorkerTable::Leases::iterator WorkerTable::Remove(Worker& worker, Leases::iterator lease) {
  if (!lease->second.old_stream) {
    --worker.taken;
  }
  return worker.leases.erase(lease);
}

void WorkerTable::EndAll(Worker& worker, bool old_stream_only, std::vector<BatchId>& lost) {
  for (auto it = worker.leases.begin(); it != worker.leases.end();) {
    Held& lease = it->second;
    if (!lease.ended && (lease.old_stream || !old_stream_only)) {
      lease.ended = true;
      lost.push_back(lease.batch);
    }
    // One of an old stream takes no place, so nothing is left to remember.
    it = lease.ended && lease.old_stream ? worker.leases.erase(it) : std::next(it);
  }
}

}  // namespace adamant::data_server
