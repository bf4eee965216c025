#include "tests/simulation/job/checks/work_checker.h"

#include <algorithm>

namespace adamant::simulation {
namespace {

std::string Name(const data_server::BatchId& batch) {
  return "batch " + std::to_string(batch.index) + " of part " + std::to_string(batch.part) +
         " in epoch " + std::to_string(batch.epoch);
}

// A controller may evaluate an epoch that ended without it before it hears so: the word that the
// part is closed was under way meanwhile.
bool HasDecidedAlone(const data_server::Ledger& ledger, DataEpoch epoch) {
  return ledger.epoch == epoch + 1 &&
         std::ranges::any_of(ledger.unattended,
                             [&](const auto& ended) { return ended.epoch == epoch; });
}

}  // namespace

WorkChecker::WorkChecker(const Setup& setup, Violations& violations)
    : setup_(setup),
      violations_(violations),
      layout_(setup.train_examples, setup.job.data_servers, setup.batch_size),
      ledgers_(NewLedgers()) {}

std::vector<data_server::Ledger> WorkChecker::NewLedgers() const {
  std::vector<data_server::Ledger> ledgers(setup_.job.data_servers);
  for (std::uint32_t part = 0; part < ledgers.size(); ++part) {
    ledgers[part].counted.resize(layout_.Batches(part));
  }
  return ledgers;
}

std::uint32_t WorkChecker::ValidationBatches() const {
  return (setup_.validation_examples + setup_.batch_size - 1) / setup_.batch_size;
}

void WorkChecker::Dispatched(const data_server::Dispatch& dispatch) {
  if (dispatch.lease.batch.kind == data_server::WorkKind::kTrain && dispatch.to.slot != 0 &&
      dispatch.job_examples < setup_.warm_start_examples) {
    violations_.Report("worker-" + std::to_string(dispatch.to.slot) +
                       " trains before the warm start is over");
  }
}

void WorkChecker::Acknowledging(const data_server::BatchId& batch) {
  if (batch.kind == data_server::WorkKind::kTrain) {
    acknowledged_.insert({batch.epoch, batch.part, batch.index});
  }
}

void WorkChecker::Answered(WorkerId server,
                           std::uint64_t attempt,
                           const data_server::Acknowledged& answer,
                           std::uint64_t snapshot) {
  // The job went back while this one was held up: its worker is refused, and the ledger another.
  if (attempt < attempt_) {
    return;
  }
  for (std::uint32_t i = 0; i < answer.leases.size(); ++i) {
    const data_server::BatchId& batch = answer.leases[i].batch;
    if (std::ranges::find(answer.duplicates, i) != answer.duplicates.end()) {
      continue;
    }
    if (batch.kind == data_server::WorkKind::kEvaluate) {
      if (!evaluated_[{server, snapshot}].insert(batch.index).second) {
        violations_.Report("validation batch " + std::to_string(batch.index) +
                           " counts twice in snapshot " + std::to_string(snapshot));
      }
      continue;
    }
    const data_server::Ledger& ledger = ledgers_[batch.part];
    if (!answered_.insert({batch.epoch, batch.part, batch.index}).second) {
      violations_.Report(Name(batch) + " is counted twice");
    }
    if (ledger.epoch < batch.epoch ||
        (ledger.epoch == batch.epoch && !ledger.counted[batch.index])) {
      violations_.Report(Name(batch) + " is answered as counted, and the stored ledger lacks it");
    }
  }
}

void WorkChecker::LedgerStored(std::uint32_t part,
                               std::uint64_t version,
                               const std::string& value) {
  versions_[part] = version;
  const auto parsed = data_server::ParseLedger(value);
  if (!parsed.ok() || parsed->counted.size() != layout_.Batches(part)) {
    return violations_.Report("a ledger that cannot be read is stored");
  }
  const data_server::Ledger& next = *parsed;
  data_server::Ledger& last = ledgers_[part];
  const std::string name = "the ledger of part " + std::to_string(part);
  const bool same = next.epoch == last.epoch;
  if (next.epoch > setup_.job.epochs) {
    return violations_.Report(name + " goes beyond the last epoch");
  }
  if (!same && !last.closed) {
    violations_.Report(name + " opens another epoch before the last one is closed");
  }
  if (!same && next.epoch != last.epoch + 1) {
    return violations_.Report(name + " goes from epoch " + std::to_string(last.epoch) + " to " +
                              std::to_string(next.epoch));
  }
  if (same && last.closed && !next.closed) {
    violations_.Report(name + " opens a closed epoch");
  }
  if (!same && next.earlier_examples != last.earlier_examples + last.counted_examples) {
    violations_.Report(name + " does not carry on the examples of earlier epochs");
  }
  std::uint64_t examples = 0;
  for (std::uint32_t batch = 0; batch < next.counted.size(); ++batch) {
    const bool before = same && last.counted[batch];
    examples += next.counted[batch] ? layout_.BatchExamples(part, batch) : 0;
    if (before && !next.counted[batch]) {
      violations_.Report(name + " forgets batch " + std::to_string(batch));
    }
    if (!before && next.counted[batch] &&
        ((same && last.closed) || !acknowledged_.contains({next.epoch, part, batch}))) {
      violations_.Report(name + " counts batch " + std::to_string(batch) +
                         ", which nobody acknowledged in time");
    }
  }
  if (examples != next.counted_examples) {
    violations_.Report(name + " counts wrong");
  }
  last = next;
  last_of_[{next.epoch, part}] = next;
}

void WorkChecker::WentBack(std::uint64_t snapshot, DataEpoch epoch, std::uint64_t attempt) {
  attempt_ = attempt;
  ledgers_ = at_snapshot_.at(snapshot).ledgers;
  const std::set<TrainBatch>& acknowledged = at_snapshot_.at(snapshot).acknowledged;
  const auto is_undone = [&](const TrainBatch& batch) {
    const auto [of_epoch, part, index] = batch;
    const data_server::Ledger& ledger = ledgers_[part];
    return of_epoch >= epoch && (ledger.epoch != of_epoch || !ledger.counted[index]);
  };
  // A ledger may have been stored that nobody has been told of.
  std::erase_if(acknowledged_, [&](const TrainBatch& batch) {
    return is_undone(batch) && !acknowledged.contains(batch);
  });
  std::erase_if(answered_, is_undone);
}

void WorkChecker::Evaluated(WorkerId server, const data_server::Evaluated& sum) {
  const std::uint64_t batches = ValidationBatches();
  const auto counted = evaluated_[{server, sum.snapshot}].size();
  if (counted != batches || sum.examples != setup_.validation_examples ||
      sum.correct != setup_.validation_examples ||
      sum.loss_sum != 0.5 * static_cast<double>(batches * (batches + 1))) {
    violations_.Report("the evaluation of snapshot " + std::to_string(sum.snapshot) + " counts " +
                       std::to_string(counted) + " of " + std::to_string(batches) + " batches, " +
                       std::to_string(sum.correct) + " right");
  }
}

void WorkChecker::EpochDone(const controller::EpochResult& row) {
  std::uint64_t counted = 0;
  std::uint64_t retrained = 0;
  for (std::uint32_t part = 0; part < ledgers_.size(); ++part) {
    const data_server::Ledger& ledger = last_of_[{row.epoch, part}];
    counted += ledger.counted_examples;
    retrained += ledger.retrained_examples;
    const bool is_left = row.is_validated() && ledgers_[part].epoch != row.epoch;
    if (!ledger.closed || (is_left && !HasDecidedAlone(ledgers_[part], row.epoch))) {
      violations_.Report("epoch " + std::to_string(row.epoch) + " ends with a part open");
    }
  }
  const bool evaluated = row.validated == setup_.validation_examples;
  if (row.counted != counted || row.left != setup_.train_examples - counted ||
      row.retrained != retrained || (!evaluated && (row.validated != 0 || row.snapshot != 0))) {
    violations_.Report("the row of epoch " + std::to_string(row.epoch) + " says " +
                       std::to_string(row.counted) + " examples, the ledgers " +
                       std::to_string(counted));
  }
  if (static_cast<double>(counted) <
      setup_.epoch_completion * static_cast<double>(setup_.train_examples)) {
    violations_.Report("epoch " + std::to_string(row.epoch) + " ends early");
  }
}

}  // namespace adamant::simulation
