#include "operator/local/recorder.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "operator/local/learning_curve.h"
#include "operator/local/record.h"
#include "services/common/base/files.h"
#include "services/common/base/status_macros.h"

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

}  // namespace

absl::StatusOr<Recorder> Recorder::Open(const RunPaths& paths,
                                        std::string job,
                                        std::vector<controller::EpochResult> results) {
  SortByTime(results);
  Recorder recorder(paths, std::move(job), std::move(results));
  std::string csv = MetricsCsvHeader();
  for (const controller::EpochResult& result : recorder.results_) {
    csv += MetricsCsvRow(result);
  }
  ADAMANT_RETURN_IF_ERROR(WriteFileAtomically(paths.metrics(), csv));
  ADAMANT_ASSIGN_OR_RETURN(recorder.metrics_, OpenToAppend(paths.metrics()));
  ADAMANT_ASSIGN_OR_RETURN(recorder.events_, OpenToAppend(paths.events()));
  ADAMANT_RETURN_IF_ERROR(recorder.Finish());
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
      drawn_(other.drawn_),
      last_drawn_(other.last_drawn_) {}

absl::Status Recorder::Note(const controller::Note& note) {
  return Append(events_, NoteJson(TimeStamp(), note) + "\n", paths_.events());
}

absl::Status Recorder::Epoch(const controller::EpochResult& result) {
  results_.push_back(result);
  ADAMANT_RETURN_IF_ERROR(Append(events_, EpochJson(TimeStamp(), result) + "\n", paths_.events()));
  ADAMANT_RETURN_IF_ERROR(Append(metrics_, MetricsCsvRow(result), paths_.metrics()));
  return std::chrono::steady_clock::now() - last_drawn_ < kCurveInterval ? absl::OkStatus()
                                                                         : DrawCurve();
}

absl::Status Recorder::Finish() {
  return drawn_ == results_.size() && drawn_ > 0 ? absl::OkStatus() : DrawCurve();
}

absl::Status Recorder::DrawCurve() {
  last_drawn_ = std::chrono::steady_clock::now();
  drawn_ = results_.size();
  return WriteFileAtomically(paths_.curve(), DrawLearningCurve(job_, results_));
}

}  // namespace adamant::local
