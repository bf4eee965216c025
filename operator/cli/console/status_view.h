#pragma once

#include <string>

namespace adamant::v1 {
class FailoverStatus;
class JobStatus;
}  // namespace adamant::v1

namespace adamant::cli {

/// The forms in which `adamant status` tells how a job stands. `live` says whether its controller
/// answered; otherwise only what is stored is known. A process is written SLOT.START: "1.2" is the
/// second start of parameter-server-1.

/// The job in a few lines and, while it runs, one line for each of its processes.
std::string StatusText(const v1::JobStatus& status, bool live);

/// The phase of a run on one machine for people, who have not suspended it but stopped it.
std::string RunPhase(const std::string& phase, bool live);

/// Returns true if more is known of the last promotion than how many there were: a controller
/// forgets it when it restarts, and there may have been none.
bool HasLastFailover(const v1::FailoverStatus& failover);

/// A line for each bucket under a heading; "" if none are known.
std::string BucketTable(const v1::JobStatus& status);

/// All of it as one JSON object without a line end. `time` is as in local::TimeStamp.
std::string StatusJson(const std::string& time, const v1::JobStatus& status, bool live);

}  // namespace adamant::cli
