#pragma once

#include <map>
#include <optional>
#include <string>

#include "operator/core/job/job_controller.h"
#include "operator/core/state/messages.h"

namespace adamant::v1 {
class ControllerMessage;
class JobStatus;
class MemberMessage;
class TrainingJob;
}  // namespace adamant::v1

/// Between the controller's own values and the messages of proto/adamant/v1.
namespace adamant::control {

/// nullopt for a message without content or with a role that does not exist.
std::optional<controller::MemberMessage> Decode(const v1::MemberMessage& message);

/// Welcome lacks the job, which the caller adds, with its rates scaled.
v1::ControllerMessage Encode(const controller::ControllerMessage& message);

/// A status holds at most this many buckets, those that are not Ready first, and a summary of all.
inline constexpr int kMostBuckets = 1000;

v1::JobStatus Encode(const controller::JobReport& report);
controller::JobReport Decode(const v1::JobStatus& status);

/// What of a job, with its defaults, the controller needs. The number of training examples is in it
/// where the manifest says it.
controller::JobSettings SettingsOf(const v1::TrainingJob& job);

/// Multiplies the learning rate of a job, with its defaults, by `factor`, and those that layers
/// have of their own by `layer_factors`, by layer.
void ScaleRates(double factor,
                const std::map<std::string, double>& layer_factors,
                v1::TrainingJob& job);

}  // namespace adamant::control
