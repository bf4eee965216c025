#include "tests/simulation/job/processes/parameter_server/record_requests.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "services/common/tensor/shard_layout.h"

namespace adamant::simulation {
namespace {

using parameter_server::Access;

constexpr char kLedgerPrefix[] = "ledger/";

std::uint32_t PartOf(const std::string& key) {
  return static_cast<std::uint32_t>(std::stoul(key.substr(std::size(kLedgerPrefix) - 1)));
}

}  // namespace

void RecordRequests::OnGet(StreamId stream, const GetRecord& get) {
  parameter_server::RecordAnswer answer = core_.records().Get(get.key);
  if (answer.access != Access::kReady) {
    return owner_.Send(stream, RecordAnswer{});
  }
  if (const auto stayed = world_.before.ledgers.find(get.key);
      world_.Has(Mutation::kLedgerStays) && owner_.attempt() > 1 &&
      stayed != world_.before.ledgers.end()) {
    answer.record.value = stayed->second;
    answer.record.version = std::max<std::uint64_t>(answer.record.version, 1);
  }
  if (answer.record.version > 0 && IsPrimary(get.key)) {
    SeeLedger(get.key, answer.record.version, answer.record.value);
  }
  owner_.Send(stream,
              RecordAnswer{.outcome = RecordAnswer::Outcome::kDone,
                           .version = answer.record.version,
                           .value = std::move(answer.record.value)});
}

void RecordRequests::OnPut(StreamId stream, const PutRecord& put) {
  if (world_.Has(Mutation::kLedgerNotStored) && world_.scheduler.Chance(0.1) &&
      core_.records().Get(put.key).access == Access::kReady) {
    return owner_.Send(
        stream,
        RecordAnswer{.outcome = RecordAnswer::Outcome::kDone, .version = put.expected_version + 1});
  }
  const absl::Status status = core_.records().Put(
      put.key,
      put.expected_version,
      put.value,
      [this, stream, put](const parameter_server::RecordAnswer& answer) {
        if (answer.access != Access::kReady) {
          return owner_.Send(stream, RecordAnswer{});
        }
        if (answer.stored && !IsOvertaken(put.key, answer.record.version)) {
          SeeLedger(put.key, answer.record.version, put.value);
          world_.before.ledgers[put.key] = put.value;
        }
        owner_.Send(stream,
                    RecordAnswer{.outcome = answer.stored ? RecordAnswer::Outcome::kDone
                                                          : RecordAnswer::Outcome::kConflict,
                                 .version = answer.record.version});
      });
  if (!status.ok()) {
    world_.violations.Report("a record is refused: " + std::string(status.message()));
  }
}

bool RecordRequests::IsPrimary(const std::string& key) const {
  return world_.job.IsPrimary(core_.options().self, BucketOfRecord(key, core_.layout().buckets()));
}

// Who was replaced while it stood still may answer when its successor has stored the next value.
bool RecordRequests::IsOvertaken(const std::string& key, std::uint64_t version) const {
  return !IsPrimary(key) && world_.work.ledger_version(PartOf(key)) >= version;
}

void RecordRequests::SeeLedger(const std::string& key,
                               std::uint64_t version,
                               const std::string& value) {
  world_.work.LedgerStored(PartOf(key), version, value);
}

}  // namespace adamant::simulation
