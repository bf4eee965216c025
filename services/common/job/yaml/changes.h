#pragma once

#include <string>
#include <vector>

namespace adamant::v1 {
class TrainingJob;
}

namespace adamant::job {

/// A field that two jobs do not agree on.
struct FieldChange {
  std::string path;  ///< "spec.optimiser.rate"; of a list, a map or a pod's spec the whole
  /// As manifests write them; "" where the field is absent, and for what is no single value.
  std::string before;
  std::string after;
};

/// "spec.optimiser.rate: 0.01 -> 0.02".
std::string Format(const FieldChange& change);

/// All fields in which `after` differs from `before`, in the schema's order. Both have their
/// defaults.
std::vector<FieldChange> ChangesBetween(const v1::TrainingJob& before,
                                        const v1::TrainingJob& after);

}  // namespace adamant::job
