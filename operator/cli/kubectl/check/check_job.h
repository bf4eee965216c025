#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "operator/kube_client/api/resource.h"

namespace adamant::kubectl {

/// The TrainingJob of `kubectl adamant check`: small, with two workers, two parameter servers and a
/// data server, and no end of its own until OpenEpochIsLast is applied. It is deleted by itself
/// some time after its end, and ended after some time, should nobody come back for it.
nlohmann::json CheckJob(const kube::ObjectKey& key);

/// A merge patch with which the job succeeds at the end of its open epoch.
nlohmann::json OpenEpochIsLast();

/// Share of validation examples that it must classify right; what has not learned is at 0.1.
inline constexpr double kLearnedAccuracy = 0.8;

}  // namespace adamant::kubectl
