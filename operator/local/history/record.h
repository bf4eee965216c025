#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "operator/core/job/job_controller.h"
#include "operator/core/state/actions.h"

/// The forms in which a run is told: lines of events.jsonl (and of `--output json`), rows of
/// metrics.csv.
namespace adamant::local {

/// Acknowledged examples over the time the epoch was open; 0 when that is unknown. Where the
/// controller has come back in that epoch, those that were trained since, over what it knows of
/// that time.
double ExamplesPerSecond(const controller::EpochResult& result);

/// JSON objects without a line end. `time` is UTC, "2026-11-21T08:00:00.123Z".
std::string NoteJson(const std::string& time, const controller::Note& note);
std::string EpochJson(const std::string& time, const controller::EpochResult& result);
std::string ProgressJson(const std::string& time, const controller::JobReport& report);

/// The header and the rows of metrics.csv, each with its line end.
std::string MetricsCsvHeader();
std::string MetricsCsvRow(const controller::EpochResult& result);

/// Puts results into the order in which their epochs ended: a later attempt has gone back to an
/// earlier epoch.
void SortByTime(std::vector<controller::EpochResult>& results);

/// The time of now for the functions above.
std::string TimeStamp();

}  // namespace adamant::local
