// The controller's state and the results of epochs, behind their checksums.

#include "operator/core/state/state.h"
#include "services/common/base/check.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

using controller::EpochResult;
using controller::JobState;

JobState StateWithEverything() {
  JobState state;
  state.job_uid = 42;
  state.term = 2;
  state.message = "goes on";
  state.checkpoint.buckets = {{.slot = 1, .generation = 2, .updates = 3, .checksum = 4}};
  state.checkpoint.cuts = {{.worker = 1, .incarnation = 2, .sequence = 30}};
  state.buckets.emplace_back().replicas = {{.slot = 0, .incarnation = 1},
                                           {.slot = 1, .incarnation = 1}};
  state.buckets.back().learner = {.slot = 2, .incarnation = 1};
  state.histories.emplace_back().updates = 17;
  state.slots.emplace_back().uid = "u";
  state.data_files = {{.field = "images", .fingerprint = 9}};
  state.recovery.layer_rates = {{.layer = "fc1", .rate = 0.1, .factor = 0.5}};
  return state;
}

template <class Value>
bool Check(const absl::StatusOr<Value>& value, absl::StatusOr<Value> (*decode)(std::string_view)) {
  if (!value.ok()) {
    return false;
  }
  const std::string written = Encode(*value);
  const absl::StatusOr<Value> again = decode(written);
  ADAMANT_CHECK(again.ok() && Encode(*again) == written,
                "a state is written otherwise than it was read");
  return true;
}

}  // namespace

std::vector<std::string> Seeds() {
  return {Unsealed(Encode(JobState{})),
          Unsealed(Encode(StateWithEverything())),
          Unsealed(Encode(EpochResult{}))};
}

bool Try(std::string_view input) {
  const std::string sealed = Sealed(input);
  const bool state = Check(controller::DecodeState(sealed), controller::DecodeState);
  return Check(controller::DecodeResult(sealed), controller::DecodeResult) || state;
}

}  // namespace adamant::fuzz
