#include <optional>
#include <span>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "operator/core/state/state.h"
#include "operator/core/state/state_reader.h"
#include "operator/core/state/state_writer.h"
#include "services/common/base/checksum.h"

namespace adamant::controller {
namespace {

// Both directions walk the same field lists, so that they cannot disagree.

// Fields that are narrower in memory than in the stored form.
template <class T>
void Narrow(StateWriter& codec, const T& value) {
  codec.Field(static_cast<std::uint64_t>(value));
}
template <class T>
void Narrow(StateReader& codec, T& value) {
  std::uint64_t wide = 0;
  codec.Field(wide);
  value = static_cast<T>(wide);
}
void Time(StateWriter& codec, const std::chrono::milliseconds& value) {
  codec.Field(static_cast<std::uint64_t>(value.count()));
}
void Time(StateReader& codec, std::chrono::milliseconds& value) {
  std::uint64_t count = 0;
  codec.Field(count);
  value = std::chrono::milliseconds(static_cast<std::int64_t>(count));
}

// A value that may be missing is stored as a list of none or one.
template <class T>
void Optional(StateWriter& codec, const std::optional<T>& value) {
  codec.Field(value ? std::vector<T>{*value} : std::vector<T>{});
}
template <class T>
void Optional(StateReader& codec, std::optional<T>& value) {
  std::vector<T> values;
  codec.Field(values);
  value = values.empty() ? std::nullopt : std::optional<T>(values.front());
}

// A field that states have from this version on.
template <class Codec, class Value>
void Since(std::uint64_t version, Codec& codec, Value& value) {
  if (codec.version() >= version) {
    codec.Field(value);
  }
}

template <class Codec, class Value>
void WalkRow(Codec& codec, Value& value) {
  codec.Field(value.epoch);
  codec.Field(value.snapshot);
  codec.Field(value.counted);
  codec.Field(value.left);
  codec.Field(value.retrained);
  codec.Field(value.trained);
  codec.Field(value.training_loss);
  codec.Field(value.training_accuracy);
  codec.Field(value.seconds);
  codec.Field(value.evaluation_seconds);
  codec.Field(value.validated);
  codec.Field(value.top1);
  codec.Field(value.validation_loss);
  codec.Field(value.pushes_refused);
  codec.Field(value.updates_lost);
  Narrow(codec, value.restarts);
  codec.Field(value.update_staleness_counts);
  if (codec.version() >= 5) {
    codec.Field(value.attempt);
    codec.Field(value.batches_of_others);
  }
}

template <class Codec, class Value>
void WalkConfiguration(Codec& codec, Value& value) {
  codec.Field(value.version);
  codec.Field(value.generation);
  Walk(codec, value.primary);
  codec.Field(value.replicas);
  Narrow(codec, value.created);
  Optional(codec, value.learner);
  Optional(codec, value.departing);
  Optional(codec, value.successor);
  codec.Field(value.restored_snapshot);
}

template <class Codec, class Value>
void WalkSlot(Codec& codec, Value& value) {
  codec.Field(value.incarnation);
  codec.Field(value.uid);
  codec.Field(value.generation);
  codec.Field(value.joined);
  codec.Field(value.concluded);
  Narrow(codec, value.losses);
  codec.Field(value.volume);
}

template <class Codec, class Value>
void WalkKeptModel(Codec& codec, Value& value) {
  Walk(codec, value.checkpoint);
  codec.Field(value.epoch);
  codec.Field(value.top1);
  codec.Field(value.evaluated);
  codec.Field(value.examples);
  codec.Field(value.counted);
  codec.Field(value.best_loss);
}

template <class Codec, class Value>
void WalkTotals(Codec& codec, Value& value) {
  codec.Field(value.epoch);
  codec.Field(value.trained);
  codec.Field(value.loss_sum);
  codec.Field(value.correct);
  codec.Field(value.pushes_refused);
  codec.Field(value.update_staleness_counts);
  codec.Field(value.batches_of_others);
}

template <class Codec, class Value>
void WalkRecovery(Codec& codec, Value& value) {
  Walk(codec, value.first);
  Walk(codec, value.healthy.checkpoint);
  codec.Field(value.healthy.epoch);
  Narrow(codec, value.found);
  codec.Field(value.healthy.top1);
  codec.Field(value.best_top1);
  codec.Field(value.attempt);
  codec.Field(value.times);
  codec.Field(value.rate_factor);
  Narrow(codec, value.going_back);
  Narrow(codec, value.ended_diverged);
  codec.Field(value.first_loss);
  codec.Field(value.divergence);
  codec.Field(value.undone_updates);
  codec.Field(value.undone_examples);
  codec.Field(value.counted_examples);
  codec.Field(value.healthy.examples);
  if (codec.version() >= 6) {
    codec.Field(value.healthy.evaluated);
    codec.Field(value.healthy.counted);
    codec.Field(value.healthy.best_loss);
    Walk(codec, value.older);
    codec.Field(value.best_loss);
  }
}

// Fields of a state that the first version which is read does not have.
template <class Codec, class Value>
void WalkLaterFields(Codec& codec, Value& value) {
  if (codec.version() >= 4) {
    Narrow(codec, value.at_chance);
  }
  if (codec.version() >= 5) {
    Walk(codec, value.recovery);
  }
  if (codec.version() >= 7) {
    codec.Field(value.best_epoch);
    codec.Field(value.best_accuracy);
  }
  if (codec.version() >= 8) {
    Walk(codec, value.recovery.newest);
  }
  if (codec.version() >= 9) {
    Narrow(codec, value.releases);
    Narrow(codec, value.released);
    codec.Field(value.starts);
    codec.Field(value.schedule_epochs);
  }
  if (codec.version() >= 10) {
    codec.Field(value.recovery.rate);
    codec.Field(value.recovery.layer_rates);
  }
  Since(11, codec, value.data_files);
  Since(12, codec, value.recovery.sign);
  Since(13, codec, value.unrecorded_losses);
  Since(14, codec, value.updates_lost);
  Since(15, codec, value.earlier_loss);
  if (codec.version() >= 16) {
    Narrow(codec, value.end);
  }
  if (codec.version() >= 17) {
    WalkTotals(codec, value.totals);
    codec.Field(value.losses_told);
    Narrow(codec, value.rolled_back.open);
    codec.Field(value.rolled_back.updates);
    codec.Field(value.rolled_back.lost);
    Narrow(codec, value.rolled_back.worker_ended);
  }
  if (codec.version() >= 18) {
    Time(codec, value.productive);
  } else if constexpr (!std::is_const_v<Value>) {
    value.productive = value.active;  // nothing is known against it
  }
}

template <class Codec, class Value>
void WalkState(Codec& codec, Value& value) {
  codec.Field(value.job_uid);
  codec.Field(value.term);
  Narrow(codec, value.phase);
  Narrow(codec, value.step);
  codec.Field(value.epoch);
  Walk(codec, value.row);
  codec.Field(value.last_snapshot);
  Walk(codec, value.checkpoint);
  codec.Field(value.evaluated_snapshot);
  codec.Field(value.accuracy);
  codec.Field(value.buckets);
  codec.Field(value.histories);
  codec.Field(value.dead);
  codec.Field(value.failovers);
  codec.Field(value.restores);
  codec.Field(value.part_owner);
  codec.Field(value.training_examples);
  codec.Field(value.slots);
  Narrow(codec, value.restarts);
  Time(codec, value.active);
  Time(codec, value.epoch_active);
  codec.Field(value.message);
  Narrow(codec, value.invalid);
  WalkLaterFields(codec, value);
}

}  // namespace

template <class Codec, class Value>
void Walk(Codec& codec, Value& value) {
  using T = std::remove_const_t<Value>;
  if constexpr (std::is_same_v<T, std::uint64_t>) {
    codec.Field(value);
  } else if constexpr (std::is_same_v<T, std::uint32_t>) {
    Narrow(codec, value);
  } else if constexpr (std::is_same_v<T, ServerId>) {
    Narrow(codec, value.slot);
    codec.Field(value.incarnation);
  } else if constexpr (std::is_same_v<T, Configuration>) {
    WalkConfiguration(codec, value);
  } else if constexpr (std::is_same_v<T, PushCut>) {
    Narrow(codec, value.worker);
    codec.Field(value.incarnation);
    codec.Field(value.sequence);
  } else if constexpr (std::is_same_v<T, CheckpointBucket>) {
    Narrow(codec, value.slot);
    codec.Field(value.generation);
    codec.Field(value.updates);
    codec.Field(value.checksum);
  } else if constexpr (std::is_same_v<T, Checkpoint>) {
    codec.Field(value.snapshot);
    codec.Field(value.epoch);
    codec.Field(value.buckets);
    codec.Field(value.cuts);
    Time(codec, value.held);
  } else if constexpr (std::is_same_v<T, BucketHistory>) {
    codec.Field(value.updates);
    codec.Field(value.rolled_back);
  } else if constexpr (std::is_same_v<T, SlotRecord>) {
    WalkSlot(codec, value);
  } else if constexpr (std::is_same_v<T, KeptModel>) {
    WalkKeptModel(codec, value);
  } else if constexpr (std::is_same_v<T, LayerRate>) {
    codec.Field(value.layer);
    codec.Field(value.rate);
    codec.Field(value.factor);
  } else if constexpr (std::is_same_v<T, LossesTold>) {
    codec.Field(value.incarnation);
    codec.Field(value.updates);
  } else if constexpr (std::is_same_v<T, DataFile>) {
    codec.Field(value.field);
    codec.Field(value.fingerprint);
  } else if constexpr (std::is_same_v<T, Recovery>) {
    WalkRecovery(codec, value);
  } else if constexpr (std::is_same_v<T, EpochResult>) {
    WalkRow(codec, value);
  } else {
    static_assert(std::is_same_v<T, JobState>);
    WalkState(codec, value);
  }
}

namespace {

std::uint64_t ChecksumOf(std::string_view bytes) {
  return Checksum(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
}

template <class Value>
std::string EncodeValue(const Value& value) {
  StateWriter writer;
  writer.Field(kStateFormatVersion);
  Walk(writer, value);
  writer.Field(ChecksumOf(writer.bytes()));
  return std::move(writer.bytes());
}

template <class Value>
absl::StatusOr<Value> DecodeValue(std::string_view bytes, const std::string& what) {
  if (bytes.size() < 16) {
    return absl::DataLossError(what + " is cut short: " + std::to_string(bytes.size()) + " bytes");
  }
  std::uint64_t version = 0;
  StateReader(bytes.substr(0, 8), kStateFormatVersion).Field(version);
  if (version < kOldestStateFormatVersion || version > kStateFormatVersion) {
    return absl::FailedPreconditionError(
        what + " has format version " + std::to_string(version) + ", this program reads " +
        std::to_string(kOldestStateFormatVersion) + " to " + std::to_string(kStateFormatVersion));
  }
  std::uint64_t checksum = 0;
  StateReader(bytes.substr(bytes.size() - 8), kStateFormatVersion).Field(checksum);
  const std::string_view guarded = bytes.substr(0, bytes.size() - 8);
  Value value;
  StateReader reader(guarded.substr(8), version);
  if (checksum == ChecksumOf(guarded)) {
    Walk(reader, value);
  }
  if (checksum != ChecksumOf(guarded) || !reader.Done()) {
    return absl::DataLossError(what + " is damaged: its checksum does not fit");
  }
  return value;
}

}  // namespace

std::string Encode(const JobState& state) { return EncodeValue(state); }

std::string Encode(const EpochResult& result) { return EncodeValue(result); }

absl::StatusOr<JobState> DecodeState(std::string_view bytes) {
  absl::StatusOr<JobState> state = DecodeValue<JobState>(bytes, "the controller's state");
  if (state.ok() && (state->phase > Phase::kSuspended || state->step > Step::kFirstWeights)) {
    return absl::DataLossError("the controller's state names an unknown phase or step");
  }
  return state;
}

absl::StatusOr<EpochResult> DecodeResult(std::string_view bytes) {
  return DecodeValue<EpochResult>(bytes, "an epoch's result");
}

}  // namespace adamant::controller
