#pragma once

#include "operator/core/job/job_report.h"

namespace adamant::v1 {
class JobStatus;
}  // namespace adamant::v1

/// Between the controller's report and the status message of proto/adamant/v1.
namespace adamant::control {

/// A status holds at most this many buckets, those that are not Ready first, and a summary of all.
inline constexpr int kMostBuckets = 1000;

v1::JobStatus Encode(const controller::JobReport& report);
controller::JobReport Decode(const v1::JobStatus& status);

}  // namespace adamant::control
