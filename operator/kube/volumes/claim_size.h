#pragma once

#include <cstdint>

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::kube {

/// Bytes of a parameter server's claim: what the spec says, else by the model. `job` has its
/// defaults.
///
/// What a server holds at a time, parameters and optimiser state of its share of all copies, is on
/// its disk up to ten times: as records, once more while they are rewritten, and in up to five
/// checkpoints, with some room as shares are not equal and grow when another server is lost. Logs
/// and tables, which do not depend on the model, have 1 GiB.
std::int64_t ServerClaimBytes(const v1::TrainingJob& job);

}  // namespace adamant::kube
