#include "operator/local/history/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include "operator/local/history/learning_curve.h"
#include "operator/local/history/record.h"
#include "operator/local/run_folder/run_folder.h"
#include "services/common/base/counted.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::local {
namespace {

absl::StatusOr<int> OpenToAppend(const std::filesystem::path& path) {
  const int descriptor = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    return SystemError(errno, "cannot open", path);
  }
  return descriptor;
}

// Lines are written with one call each and never in part, so that readers see whole ones.
absl::Status Append(int descriptor, const std::string& line, const std::filesystem::path& path) {
  const off_t end = lseek(descriptor, 0, SEEK_END);
  const ssize_t written = write(descriptor, line.data(), line.size());
  if (written == static_cast<ssize_t>(line.size())) {
    return absl::OkStatus();
  }
  const int error = written < 0 ? errno : ENOSPC;
  if (written > 0 && ftruncate(descriptor, end) != 0) {
    return SystemError(errno, "cannot shorten", path);
  }
  return SystemError(error, "cannot write", path);
}

// A folder cannot be written to, and whoever opens a FIFO waits for ever.
absl::Status CheckPlace(const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::file_type found = std::filesystem::status(path, error).type();
  return found == std::filesystem::file_type::directory || found == std::filesystem::file_type::fifo
             ? Misplaced(path, found, std::filesystem::file_type::regular)
             : absl::OkStatus();
}

// What has failed, all in one message, so that all can be put right at once.
absl::Status Both(const absl::Status& first, const absl::Status& second) {
  return first.ok() ? second
         : second.ok()
             ? first
             : absl::Status(first.code(),
                            std::string(first.message()) + "; " + std::string(second.message()));
}

constexpr std::uint64_t kMaxMetricsBytes = std::uint64_t{1} << 30;

std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, separator);) {
    parts.push_back(part);
  }
  return parts;
}

// The number in a column of a row of metrics.csv; nullopt if it is no such row.
std::optional<std::uint64_t> NumberIn(std::string_view column, const std::string& row) {
  const std::vector<std::string> columns = Split(MetricsCsvHeader(), ',');
  const std::vector<std::string> fields = Split(row + ",", ',');  // the last may be empty
  const auto found = std::ranges::find(columns, column);
  if (fields.size() != columns.size() || found == columns.end()) {
    return std::nullopt;
  }
  const std::string& field = fields[static_cast<std::size_t>(found - columns.begin())];
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), number);
  return error == std::errc() && end == field.data() + field.size() ? std::optional(number)
                                                                    : std::nullopt;
}

}  // namespace

absl::StatusOr<Recorder> Recorder::Open(const RunPaths& paths,
                                        std::string job,
                                        std::vector<controller::EpochResult> results) {
  SortByTime(results);
  Recorder recorder(paths, std::move(job), std::move(results));
  recorder.unknown_ = UnknownRows(paths.metrics(), recorder.results_);
  recorder.alarm_ = BeyondText(paths, recorder.unknown_, recorder.results_);
  ADAMANT_RETURN_IF_ERROR(recorder.WriteMetrics());
  ADAMANT_ASSIGN_OR_RETURN(recorder.events_, OpenToAppend(paths.events()));
  if (absl::Status drawn = recorder.Finish(); absl::IsResourceExhausted(drawn)) {
    return drawn;  // no matter of the picture alone
  }
  return recorder;
}

Recorder::Recorder(const RunPaths& paths,
                   std::string job,
                   std::vector<controller::EpochResult> results)
    : paths_(paths), job_(std::move(job)), results_(std::move(results)) {}

Recorder::~Recorder() {
  for (const int descriptor : {events_, metrics_}) {
    if (descriptor >= 0) {
      close(descriptor);
    }
  }
}

Recorder::Recorder(Recorder&& other) noexcept
    : paths_(std::move(other.paths_)),
      job_(std::move(other.job_)),
      results_(std::move(other.results_)),
      events_(std::exchange(other.events_, -1)),
      metrics_(std::exchange(other.metrics_, -1)),
      unknown_(std::move(other.unknown_)),
      alarm_(std::move(other.alarm_)),
      behind_(other.behind_),
      drawn_(other.drawn_),
      last_drawn_(other.last_drawn_) {}

std::string Recorder::CheckRows(const RunPaths& paths,
                                const std::vector<controller::EpochResult>& results) {
  return BeyondText(paths, UnknownRows(paths.metrics(), results), results);
}

std::string Recorder::TakeAlarm() { return std::exchange(alarm_, ""); }

// Of epochs after the newest: older ones stay unknown once the job has gone on.
std::string Recorder::BeyondText(const RunPaths& paths,
                                 const Rows& rows,
                                 const std::vector<controller::EpochResult>& results) {
  const Key newest = NewestOf(results);
  const auto beyond = static_cast<std::size_t>(
      std::ranges::count_if(rows, [&](const auto& row) { return row.first > newest; }));
  return beyond == 0
             ? ""
             : paths.metrics().string() + " has " + Counted(beyond, "row") +
                   " that the controller's state lacks: it has gone back, or could not be stored";
}

Recorder::Key Recorder::NewestOf(const std::vector<controller::EpochResult>& results) {
  Key newest{0, 0};
  for (const controller::EpochResult& result : results) {
    newest = std::max(newest, {result.attempt, result.epoch});
  }
  return newest;
}

// They stand in the order of time, so that what a state lacks that has gone back is behind the rows
// that it has; once the job has gone on, among those of its attempt. Of earlier attempts the oldest
// rows are left out on purpose.
Recorder::Rows Recorder::UnknownRows(const std::filesystem::path& path,
                                     const std::vector<controller::EpochResult>& results) {
  Rows rows;
  const absl::StatusOr<std::string> csv = ReadFile(path, kMaxMetricsBytes);
  if (!csv.ok() || !csv->starts_with(MetricsCsvHeader())) {
    return rows;
  }
  const Key newest = NewestOf(results);
  const std::vector<std::string> lines = Split(*csv, '\n');
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto attempt = NumberIn("attempt", lines[i]);
    const auto epoch = NumberIn("epoch", lines[i]);
    if (!attempt.has_value() || !epoch.has_value()) {
      continue;
    }
    const Key key(*attempt, *epoch);
    if (i > results.size() || (*attempt == newest.first && key < newest)) {
      rows.emplace(key, lines[i] + "\n");
    }
  }
  for (const controller::EpochResult& result : results) {
    rows.erase({result.attempt, result.epoch});
  }
  return rows;
}

absl::Status Recorder::WriteMetrics() {
  behind_ = true;
  std::string csv = MetricsCsvHeader();
  for (const controller::EpochResult& result : results_) {
    csv += MetricsCsvRow(result);
  }
  for (const auto& [key, row] : unknown_) {
    csv += row;
  }
  ADAMANT_RETURN_IF_ERROR(WriteFileAtomically(paths_.metrics(), csv));
  if (metrics_ >= 0) {
    close(std::exchange(metrics_, -1));
  }
  ADAMANT_ASSIGN_OR_RETURN(metrics_, OpenToAppend(paths_.metrics()));
  behind_ = false;
  return absl::OkStatus();
}

absl::Status Recorder::Note(const controller::Note& note) {
  return Append(events_, NoteJson(TimeStamp(), note) + "\n", paths_.events());
}

// What fails does not keep the rest from being written.
absl::Status Recorder::Epoch(const controller::EpochResult& result) {
  results_.push_back(result);
  const bool replaces = unknown_.erase({result.attempt, result.epoch}) > 0;
  const bool away = !IsInPlace(metrics_, paths_.metrics());
  const absl::Status rows = behind_ || replaces || away ? WriteMetrics() : AppendRow(result);
  absl::Status events = BringEventsBack();
  events.Update(Append(events_, EpochJson(TimeStamp(), result) + "\n", paths_.events()));
  const bool draws = std::chrono::steady_clock::now() - last_drawn_ >= kCurveInterval;
  return Both(Both(rows, events), draws ? DrawCurve() : CheckPlace(paths_.curve()));
}

// Where it is not the open file any more, what is to come goes into another.
absl::Status Recorder::BringEventsBack() {
  if (IsInPlace(events_, paths_.events())) {
    return absl::OkStatus();
  }
  ADAMANT_RETURN_IF_ERROR(CheckPlace(paths_.events()));
  ADAMANT_ASSIGN_OR_RETURN(const int opened, OpenToAppend(paths_.events()));
  close(std::exchange(events_, opened));
  return absl::OkStatus();
}

absl::Status Recorder::AppendRow(const controller::EpochResult& result) {
  const absl::Status status = Append(metrics_, MetricsCsvRow(result), paths_.metrics());
  behind_ = !status.ok();
  return status;
}

absl::Status Recorder::Finish() {
  const bool lacks_rows = behind_ || !IsInPlace(metrics_, paths_.metrics());
  const absl::Status rows = lacks_rows ? WriteMetrics() : absl::OkStatus();
  std::error_code error;
  const bool lacks_curve = drawn_ != results_.size() || drawn_ == 0 ||
                           !std::filesystem::is_regular_file(paths_.curve(), error);
  return Both(Both(rows, BringEventsBack()), lacks_curve ? DrawCurve() : absl::OkStatus());
}

absl::Status Recorder::DrawCurve() {
  last_drawn_ = std::chrono::steady_clock::now();
  ADAMANT_RETURN_IF_ERROR(WriteFileAtomically(paths_.curve(), DrawLearningCurve(job_, results_)));
  drawn_ = results_.size();
  return absl::OkStatus();
}

}  // namespace adamant::local
