#include "tests/simulation/job/checks/update_checker.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string>
#include <utility>

namespace adamant::simulation {
namespace {

std::string Seconds(Clock::TimePoint time) {
  return std::to_string(std::chrono::duration<double>(time.time_since_epoch()).count()) + " s";
}

}  // namespace

std::string UpdateChecker::Name(WorkerId worker) {
  return "worker-" + std::to_string(worker.slot) + " incarnation " +
         std::to_string(worker.incarnation);
}

std::string UpdateChecker::Name(ShardId shard, std::uint32_t element) {
  return "trained batch " + std::to_string(element) + " in shard " + std::to_string(shard);
}

UpdateChecker::UpdateChecker(const Setup& setup,
                             Scheduler& scheduler,
                             Violations& violations,
                             const std::vector<Disk>& disks)
    : setup_(setup), scheduler_(scheduler), violations_(violations), disks_(disks) {
  for (const Shard& shard : setup.layout.shards()) {
    initial_.push_back(setup.InitialValues(shard.id));
    ShardState& state = shards_.emplace_back();
    for (Present* present : {&state.live, &state.applied, &state.ever, &state.lost}) {
      present->resize(Setup::kElements);
    }
    state.acknowledged_at.resize(Setup::kElements);
  }
}

// --- At workers

std::uint32_t UpdateChecker::Trained(WorkerId worker, const worker::Lease& lease, bool poisoned) {
  const auto element = static_cast<std::uint32_t>(trainings_.size());
  if (element == Setup::kElements) {
    Report("batches are trained again without end");
    return 0;
  }
  trainings_.push_back(
      {.worker = worker, .lease = lease, .poisoned = poisoned, .undone = before_.contains(worker)});
  by_lease_[{worker, lease.batch}][lease.id] = element;
  poisoned_[worker] += poisoned ? 1 : 0;
  return element;
}

// The elements that an update adds 1 to.
std::vector<std::uint32_t> UpdateChecker::ElementsOf(const PushFrame& push, std::size_t update) {
  std::vector<std::uint32_t> elements;
  const worker::ShardUpdate& content = push.payload.updates[update];
  for (std::uint32_t i = 0; i < content.values.size(); ++i) {
    if (content.values[i] != 0) {
      elements.push_back(i);
      if (content.values[i] != 1) {
        Report(Name(push.header.updates[update].shard, i) + " is pushed with " +
               std::to_string(content.values[i]) + ", not 1");
      }
    }
  }
  if (content.kind != worker::UpdateKind::kOuterProduct) {
    return elements;
  }
  const worker::PushPayload::Operands& operands = push.payload.operands[content.operands];
  for (std::size_t piece = 0; piece < operands.errors.size(); ++piece) {
    const auto errors = operands.errors[piece];
    const auto activations = operands.activations[piece];
    for (std::size_t row = 0; row * operands.outputs < errors.size(); ++row) {
      const auto error = errors.subspan(row * operands.outputs, operands.outputs);
      const auto activation = activations.subspan(row * operands.inputs, operands.inputs);
      const auto output = std::ranges::find(error, 1.0F) - error.begin();
      const auto input = std::ranges::find(activation, 1.0F) - activation.begin();
      if (output < std::ssize(error) && input < std::ssize(activation)) {
        elements.push_back(static_cast<std::uint32_t>(output * std::ssize(activation) + input));
      }
    }
  }
  std::ranges::sort(elements);
  return elements;
}

void UpdateChecker::Sent(WorkerId worker, const PushFrame& push) {
  const Sequence sequence = push.header.sequence();
  requests_[{worker, push.header.request}] = sequence;
  const auto [found, fresh] = pushes_.try_emplace({worker, sequence});
  if (fresh && sequence > 1 && !pushes_.contains({worker, sequence - 1})) {
    Report(Name(worker) + " leaves out sequence " + std::to_string(sequence - 1));
  }
  for (std::size_t i = 0; i < push.header.updates.size(); ++i) {
    std::vector<std::uint32_t> elements = ElementsOf(push, i);
    if (fresh && i == 0) {
      for (const std::uint32_t element : elements) {
        Training& training = trainings_[element];
        if (training.sequence != 0 || training.worker != worker || training.handed_back ||
            training.poisoned) {
          Report("trained batch " + std::to_string(element) + " must not be in push " +
                 std::to_string(sequence) + " of " + Name(worker));
        }
        training.sequence = sequence;
      }
      found->second.elements = std::move(elements);
    } else if (elements != found->second.elements) {
      Report(Name(worker) + " sends sequence " + std::to_string(sequence) + " for shard " +
             std::to_string(push.header.updates[i].shard) + " with other bytes than before");
    }
  }
}

void UpdateChecker::Replied(WorkerId worker, const worker::PushReply& reply) {
  const auto request = requests_.find({worker, reply.request});
  if (request == requests_.end()) {
    return Report(Name(worker) + " is answered a request that it never made");
  }
  Push& push = pushes_.at({worker, request->second});
  for (const worker::ShardAck& ack : reply.acks) {
    if (ack.outcome != worker::PushOutcome::kApplied &&
        ack.outcome != worker::PushOutcome::kDuplicate) {
      continue;
    }
    push.acknowledged.insert(ack.shard);
    for (const std::uint32_t element : push.elements) {
      if (shards_[ack.shard].ever[element] == 0) {
        Report(Name(ack.shard, element) + " is acknowledged to its worker, and no primary did so");
      }
    }
  }
}

UpdateChecker::Training* UpdateChecker::Find(WorkerId worker, const worker::Lease& lease) {
  const auto batch = by_lease_.find({worker, lease.batch});
  if (batch == by_lease_.end() || !batch->second.contains(lease.id)) {
    return nullptr;
  }
  return &trainings_[batch->second.at(lease.id)];
}

void UpdateChecker::Acknowledging(WorkerId worker, const worker::Lease& lease) {
  const Training* const training = Find(worker, lease);
  if (training == nullptr) {
    return Report(Name(worker) + " acknowledges a batch that it never trained");
  }
  const auto push = pushes_.find({worker, training->sequence});
  if (push == pushes_.end() || push->second.acknowledged.size() != setup_.plan.pushed.size()) {
    Report(Name(worker) + " acknowledges batch " + std::to_string(lease.batch.index) + " of part " +
           std::to_string(lease.batch.part) + " before its push is acknowledged");
  }
}

void UpdateChecker::HandingBack(WorkerId worker, const worker::Lease& lease) {
  if (Training* const training = Find(worker, lease)) {
    training->handed_back = true;
    if (training->sequence != 0) {
      Report(Name(worker) + " hands back a batch whose update it has pushed");
    }
  }
}

void UpdateChecker::CheckWeights(WorkerId worker, std::span<const float> weights) {
  if (poisoned_[worker] > 0) {
    return;  // what was refused may still stand in the local copy
  }
  for (const worker::PushedShard& pushed : setup_.plan.pushed) {
    const Shard& shard = setup_.layout.shards()[pushed.shard];
    const auto values =
        weights.subspan(setup_.layout.OffsetOf(shard.tensor) + shard.begin, shard.size());
    const Present present = Decode(pushed.shard, values);
    for (std::uint32_t element = 0; element < trainings_.size(); ++element) {
      const Training& training = trainings_[element];
      if (present[element] == 0 && training.worker == worker && !training.handed_back &&
          shards_[pushed.shard].lost[element] == 0) {
        return Report(Name(pushed.shard, element) + " is missing in the weights of " +
                      Name(worker) + ", which trained it");
      }
    }
  }
}

void UpdateChecker::CheckRetained(WorkerId worker, std::uint64_t lost_updates) {
  if (setup_.retain_bytes > 0 && lost_updates > 0 && !before_.contains(worker)) {
    Report(Name(worker) + " has lost " + std::to_string(lost_updates) +
           " updates, which it was to keep until they are on every disk");
  }
}

void UpdateChecker::CheckLosses(WorkerId worker, std::uint64_t lost_updates) {
  std::uint64_t noticed = 0;
  for (const worker::PushedShard& pushed : setup_.plan.pushed) {
    const ShardState& state = shards_[pushed.shard];
    std::uint64_t missing = 0;
    for (const auto& [key, push] : pushes_) {
      if (key.first != worker || !push.acknowledged.contains(pushed.shard)) {
        continue;
      }
      if (state.live[push.elements.front()] == 0) {
        ++missing;
      } else {
        noticed += std::exchange(missing, 0);  // a later one was applied: the gap was seen
      }
    }
  }
  if (lost_updates < noticed || (lost_updates > 0 && lost_ == 0)) {
    Report(Name(worker) + " counts " + std::to_string(lost_updates) + " lost updates; " +
           std::to_string(noticed) + " are missing");
  }
}

// --- At parameter servers

void UpdateChecker::Acknowledged(const parameter_server::WorkerId& writer,
                                 const PushFrame& push,
                                 std::span<const parameter_server::ShardAck> acks) {
  for (std::size_t i = 0; i < acks.size(); ++i) {
    const bool applied = acks[i].outcome == parameter_server::PushOutcome::kApplied;
    if (!applied && acks[i].outcome != parameter_server::PushOutcome::kDuplicate) {
      continue;
    }
    ShardState& state = shards_[acks[i].shard];
    const auto orphaned = orphaned_.find(setup_.layout.shards()[acks[i].shard].bucket);
    if (orphaned != orphaned_.end() && !orphaned->second.until) {
      orphaned->second.until = scheduler_.Now();
    }
    for (const std::uint32_t element : ElementsOf(push, i)) {
      if (applied && element < trainings_.size() && trainings_[element].undone) {
        Report(Name(acks[i].shard, element) + " is applied, and the job went back since");
      }
      if (applied && std::exchange(state.applied[element], 1) != 0) {
        Report(Name(acks[i].shard, element) + " is applied twice");
      }
      if (element >= trainings_.size() || trainings_[element].worker.slot != writer.slot) {
        return Report("an update is applied that nobody trained");
      }
      if (state.live[element] == 0) {
        state.live[element] = 1;
        state.ever[element] = 1;
        state.lost[element] = 0;
        state.acknowledged_at[element] = scheduler_.Now();
      }
    }
  }
}

void UpdateChecker::Refused(const parameter_server::WorkerId& writer,
                            std::span<const parameter_server::ShardAck> acks) {
  for (const parameter_server::ShardAck& ack : acks) {
    if (ack.outcome == parameter_server::PushOutcome::kApplied) {
      Report(Name({writer.slot, writer.incarnation}) + ", which was given up, pushes to shard " +
             std::to_string(ack.shard) + " after a snapshot was asked for");
    }
  }
}

// What a server has of a shard.
UpdateChecker::Present UpdateChecker::DecodeServed(ShardId shard, std::span<const float> values) {
  Present present = Decode(shard, values);
  for (std::uint32_t element = 0; element < Setup::kElements; ++element) {
    if (present[element] != 0 &&
        (element >= trainings_.size() || trainings_[element].sequence == 0)) {
      Report(Name(shard, element) + " comes from nowhere");
    }
  }
  return present;
}

void UpdateChecker::Read(ShardId shard, std::span<const float> values) {
  const Present found = DecodeServed(shard, values);
  for (std::uint32_t element = 0; element < Setup::kElements; ++element) {
    if (found[element] < shards_[shard].live[element]) {
      return Report(Name(shard, element) + " was acknowledged, and a read does not show it");
    }
  }
}

void UpdateChecker::Orphaned(BucketId bucket) {
  const auto orphaned = orphaned_.find(bucket);
  if (orphaned == orphaned_.end() || orphaned->second.until) {
    orphaned_[bucket] = {.since = scheduler_.Now(), .until = std::nullopt};
  }
}

void UpdateChecker::Ended(std::uint32_t server,
                          BucketId bucket,
                          Clock::Duration window,
                          Clock::Duration synced) {
  const Clock::TimePoint now = scheduler_.Now();
  const auto orphaned = orphaned_.find(bucket);
  const auto before = [&](Clock::Duration time) {
    const Clock::TimePoint safe = now - time;
    return orphaned != orphaned_.end() && orphaned->second.until.value_or(now) >= safe
               ? std::min(safe, orphaned->second.since - time)
               : safe;
  };
  safe_[{server, bucket}] = {.until = before(window), .synced = before(synced)};
}

void UpdateChecker::PowerLost(std::uint32_t server) {
  for (auto& [key, safe] : safe_) {
    if (key.first == server) {
      safe.until = std::min(safe.until, safe.synced);
    }
  }
}

bool UpdateChecker::Restored(BucketId bucket, std::uint64_t generation) {
  return std::exchange(generations_[bucket], generation) != generation && generation > 1;
}

UpdateChecker::Present UpdateChecker::Decode(ShardId shard, std::span<const float> values) {
  Present present(Setup::kElements);
  for (std::uint32_t element = 0; element < Setup::kElements; ++element) {
    const float added = (values[element] - initial_[shard][element]) * setup_.sign();
    const float times = std::round(added);
    if (!(std::fabs(added - times) < 1e-3F) || times < 0 || times > 1) {
      Report(Name(shard, element) + " counts " + std::to_string(added) + " times");
    }
    present[element] = times > 0 ? 1 : 0;
  }
  return present;
}

void UpdateChecker::Loaded(std::uint32_t server, ShardId shard, std::span<const float> values) {
  ShardState& state = shards_[shard];
  const Present found = DecodeServed(shard, values);
  if (const auto back = goes_back_.find(shard); back != goes_back_.end()) {
    LoadedBack(shard, found, back->second);
    goes_back_.erase(back);
    return;
  }
  const Clock::TimePoint safe_until = safe_[{server, setup_.layout.shards()[shard].bucket}].until;
  for (std::uint32_t element = 0; element < Setup::kElements; ++element) {
    if (found[element] >= state.live[element]) {
      continue;
    }
    Lost(shard, element);
    if (state.acknowledged_at[element] < safe_until) {
      Report(Name(shard, element) + " is lost, older than the window of unflushed updates of " +
             "parameter-server-" + std::to_string(server) + ": acknowledged at " +
             Seconds(state.acknowledged_at[element]) + ", and what is older than " +
             Seconds(safe_until) + " is on its disk");
    }
  }
}

// A snapshot that was asked for before holds it all the same. One that was asked for since holds
// what workers at rest keep until it is on every disk.
void UpdateChecker::Lost(ShardId shard, std::uint32_t element) {
  ShardState& state = shards_[shard];
  state.live[element] = 0;
  state.applied[element] = 0;
  state.lost[element] = 1;
  ++lost_;
  const BucketId bucket = setup_.layout.shards()[shard].bucket;
  const WorkerId worker = trainings_[element].worker;
  for (auto& [snapshot, present] : state.snapshots) {
    const Snapshot& asked = snapshots_[snapshot];
    const bool since =
        !asked.generations.empty() && asked.generations[bucket] >= generations_[bucket];
    const bool kept =
        setup_.retain_bytes > 0 && since && worker.incarnation >= asked.writers_from[worker.slot];
    if (since && !kept) {
      present[element] = 0;
    }
  }
}

bool UpdateChecker::WentBack(BucketId bucket, std::uint64_t generation, std::uint64_t snapshot) {
  if (std::exchange(went_back_[bucket], generation) == generation) {
    return false;
  }
  for (const Shard& shard : setup_.layout.shards()) {
    if (shard.bucket == bucket) {
      goes_back_[shard.id] = snapshot;
    }
  }
  for (Training& training : trainings_) {
    training.undone = true;
    before_.insert(training.worker);
  }
  return true;
}

void UpdateChecker::CheckEnd(std::uint64_t job_uid, std::uint32_t server, BucketId bucket) {
  const auto restored = RestoreFrom(job_uid, server, std::vector{bucket}, 0);
  if (!restored.ok()) {
    return Report("at the end: " + std::string(restored.status().message()));
  }
  for (const auto& [shard, values] : *restored) {
    Loaded(server, shard, values);
    const ShardState& state = shards_[shard];
    for (const auto& [key, push] : pushes_) {
      for (const std::uint32_t element : push.elements) {
        if (push.acknowledged.contains(shard) && !trainings_[element].undone &&
            state.live[element] + state.lost[element] != 1) {
          Report(Name(shard, element) + " was acknowledged and is missing");
        }
      }
    }
  }
}

}  // namespace adamant::simulation
