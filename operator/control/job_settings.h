#pragma once

#include <map>
#include <string>

#include "operator/core/job/job_controller.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

/// Settings that the controller takes from a manifest.
namespace adamant::control {

/// Returns what the controller needs of a job, which has its defaults. The number of training
/// examples is in it where the manifest says it.
controller::JobSettings SettingsOf(const v1::TrainingJob& job);

/// Multiplies the learning rate of a job, with its defaults, by `factor`, and those that layers
/// have of their own by `layer_factors`, by layer.
void ScaleRates(double factor,
                const std::map<std::string, double>& layer_factors,
                v1::TrainingJob& job);

}  // namespace adamant::control
