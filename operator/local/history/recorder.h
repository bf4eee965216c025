#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/core/state/actions.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/base/ids.h"

namespace adamant::local {

/// Keeps the files that tell a run's story: events.jsonl, metrics.csv, learning-curve.svg.
/// Threads: one.
class Recorder {
 public:
  /// Writes metrics.csv and the curve anew from `results`, what is stored of earlier, in any order;
  /// goes on with events.jsonl. A curve that cannot be drawn, but for a full disk, is left to
  /// Finish. Rows of epochs that `results` lacks stay, behind the others, until these
  /// epochs have ended again. Errors: those of the file system, naming the file.
  static absl::StatusOr<Recorder> Open(const RunPaths& paths,
                                       std::string job,
                                       std::vector<controller::EpochResult> results);

  ~Recorder();
  Recorder(Recorder&& other) noexcept;
  Recorder& operator=(Recorder&&) = delete;

  // Errors: those of the file system, of all files that fail, in one message. The run can go on
  // without a line of events.jsonl; what else could not be written is written with the next epoch,
  // or by Finish.
  absl::Status Note(const controller::Note& note);
  absl::Status Epoch(const controller::EpochResult& result);

  /// Writes metrics.csv and the curve anew where they are behind the results, or not the files
  /// that were written any more. Errors: as above, also of what is in the place of events.jsonl.
  absl::Status Finish();

  /// Returns an alarm if metrics.csv has rows of epochs after those of `results`, else "".
  static std::string CheckRows(const RunPaths& paths,
                               const std::vector<controller::EpochResult>& results);

  /// CheckRows of what there was at the start; empty where it was told.
  std::string TakeAlarm();

  /// Returns the results of all attempts, in the order in which their epochs ended.
  [[nodiscard]] const std::vector<controller::EpochResult>& results() const { return results_; }

 private:
  Recorder(const RunPaths& paths, std::string job, std::vector<controller::EpochResult> results);

  /// The curve is drawn at most this often while the job runs.
  static constexpr std::chrono::seconds kCurveInterval{2};

  using Key = std::pair<std::uint64_t, DataEpoch>;  // of an attempt
  using Rows = std::map<Key, std::string>;

  static Key NewestOf(const std::vector<controller::EpochResult>& results);
  static Rows UnknownRows(const std::filesystem::path& path,
                          const std::vector<controller::EpochResult>& results);
  static std::string BeyondText(const RunPaths& paths,
                                const Rows& rows,
                                const std::vector<controller::EpochResult>& results);
  absl::Status WriteMetrics();
  absl::Status AppendRow(const controller::EpochResult& result);
  absl::Status BringEventsBack();
  absl::Status DrawCurve();

  RunPaths paths_;
  std::string job_;
  std::vector<controller::EpochResult> results_;
  int events_ = -1;
  int metrics_ = -1;
  Rows unknown_;           // of metrics.csv, without a result
  std::string alarm_;      // of those
  bool behind_ = false;    // metrics.csv lacks rows that there are results of
  std::size_t drawn_ = 0;  // results in the curve
  std::chrono::steady_clock::time_point last_drawn_{};
};

}  // namespace adamant::local
