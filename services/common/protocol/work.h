#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "services/common/base/ids.h"

/// Work: what data servers, workers and the controller say to each other about batches and epochs
/// of the data.
namespace adamant::protocol {

enum class WorkKind : std::uint8_t { kTrain, kEvaluate };

/// Names a batch. For kEvaluate, part is 0.
struct BatchId {
  WorkKind kind = WorkKind::kTrain;
  DataEpoch epoch = 0;
  std::uint32_t part = 0;
  std::uint32_t index = 0;  ///< within the part's order of this epoch

  auto operator<=>(const BatchId&) const = default;
};

/// A batch handed out once. Handed out again, it gets another id.
struct Lease {
  BatchId batch{};
  std::uint64_t id = 0;

  auto operator<=>(const Lease&) const = default;
};

/// Returns the id of the first lease that a data server grants; it counts up from there. Ids of
/// different processes differ, so that a late result is never taken for another's: 24 bits of
/// incarnation, 12 of slot, 28 that count.
constexpr std::uint64_t FirstLeaseId(std::uint32_t slot, Incarnation incarnation) {
  return (incarnation << 40) + (std::uint64_t{slot} << 28) + 1;
}

/// Returns the slot of the data server that has granted it.
constexpr std::uint32_t GrantorOf(const Lease& lease) {
  return static_cast<std::uint32_t>(lease.id >> 28) & 0xfff;
}

/// Outcome of a leased batch.
struct LeaseResult {
  Lease lease{};
  std::uint64_t examples = 0;
  double loss_sum = 0;        ///< over its examples
  std::uint64_t correct = 0;  ///< top-1
};

/// Rule by which bytes become inputs: (byte - mean[channel]) / deviation[channel].
struct Normalisation {
  std::vector<float> mean{};       ///< by channel, in units of the byte (0..255)
  std::vector<float> deviation{};  ///< by channel, > 0

  bool operator==(const Normalisation&) const = default;
};

// --- From the controller to data servers

struct OpenEpoch {
  DataEpoch epoch = 0;
};

struct CloseEpoch {
  DataEpoch epoch = 0;
};

struct Evaluate {
  DataEpoch epoch = 0;
  std::uint64_t snapshot = 0;
};

// --- From data servers to the controller

struct EpochEnded {
  DataEpoch epoch = 0;
};

struct PartClosed {
  DataEpoch epoch = 0;
  std::uint32_t part = 0;
  std::uint64_t counted_examples = 0;
  std::uint64_t left_examples = 0;
  std::uint64_t retrained_examples = 0;
};

struct Evaluated {
  DataEpoch epoch = 0;
  std::uint64_t snapshot = 0;
  std::uint64_t examples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0;
  std::uint64_t most_frequent = 0;  ///< examples of the class that has most of them; 0: not known
};

/// A file of the job's data that the manifest names by its path.
struct DataFile {
  std::string field{};  ///< "spec.data.train.idx.images"
  std::uint64_t fingerprint = 0;

  bool operator==(const DataFile&) const = default;
};

/// An epoch of the whole job that ended while no controller was there. Counts are of examples.
struct UnattendedEpoch {
  DataEpoch epoch = 0;
  std::uint64_t counted = 0;
  std::uint64_t left = 0;
  std::uint64_t retrained = 0;

  bool operator==(const UnattendedEpoch&) const = default;
};

/// Totals of a data server, in its heartbeats. Examples are of its parts where nothing else is
/// said.
struct DataServerProgress {
  DataEpoch epoch = 0;
  std::uint64_t counted_examples = 0;     ///< in this epoch
  std::uint64_t total_examples = 0;       ///< of an epoch
  std::uint64_t dispatched_examples = 0;  ///< out under lease
  std::uint64_t retrained_examples = 0;   ///< in this epoch
  std::uint64_t job_examples = 0;         ///< acknowledged in all epochs and parts, as known here
  std::uint64_t training_examples = 0;    ///< of the whole training data
  DataEpoch decided_epoch = 0;            ///< of part 0's record, where it is this server's; else 0
  std::vector<UnattendedEpoch> unattended{};  ///< before that epoch, no controller knows of them
  std::vector<DataFile> data_files{};         ///< that this server has read
};

}  // namespace adamant::protocol
