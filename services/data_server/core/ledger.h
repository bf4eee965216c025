#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/base/ids.h"
#include "services/common/protocol/work.h"

namespace adamant::data_server {

using protocol::UnattendedEpoch;

/// Known state of one part of the training data: the value of its record on the parameter servers.
/// Nothing else about an epoch is kept anywhere.
struct Ledger {
  DataEpoch epoch = 0;                 ///< 0: none was opened yet
  bool closed = true;                  ///< the epoch takes no more acknowledgements
  std::vector<bool> counted;           ///< by batch of the epoch
  std::uint64_t counted_examples = 0;  ///< of this epoch
  std::uint64_t retrained_examples =
      0;                               ///< of this epoch: dispatched again after a worker was lost
  std::uint64_t earlier_examples = 0;  ///< counted in earlier epochs
  /// Part 0 only: epochs that no controller is known to have heard of, rising; the newest ones.
  std::vector<UnattendedEpoch> unattended{};
  std::uint32_t writer_slot = 0;       ///< the data server that wrote the value, so that it
  Incarnation writer_incarnation = 0;  ///<   recognises a write whose answer it missed
  bool operator==(const Ledger&) const = default;

  /// So many fit the record beside the largest bitmap.
  static constexpr std::size_t kMostUnattended = 1000;

  /// Counted in the whole job.
  [[nodiscard]] std::uint64_t job_examples() const { return earlier_examples + counted_examples; }
};

/// The record's value: a format version, the fields, and a checksum. Little-endian.
std::string SerializeLedger(const Ledger& ledger);

/// Errors: FailedPrecondition for an unknown format version, naming both; DataLoss for a wrong
/// length, checksum or content.
absl::StatusOr<Ledger> ParseLedger(std::string_view value);

}  // namespace adamant::data_server
