#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/actions.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"

namespace adamant::v1 {
class TrainingJob;
}  // namespace adamant::v1

namespace adamant::local {

/// Copies every n-th checkpoint of a run that runs whole into folders beside the manifests, and
/// keeps the newest of these (spec.output.checkpoints). One is copied at a time, on a thread of its
/// own; of those that are due meanwhile the newest is the next.
/// Threads: all members on one thread.
class CheckpointCopies {
 public:
  /// Outcome of copying a checkpoint. Errors: those of SaveCheckpoint.
  struct Result {
    std::uint64_t checkpoint = 0;
    absl::Status status;
  };

  /// `job`, which asks for copies and has its defaults, and `paths` must outlive this.
  /// `newest`: the run's newest checkpoint; later ones count.
  CheckpointCopies(const v1::TrainingJob& job, const RunPaths& paths, std::uint64_t newest);

  /// Stops what is being copied.
  ~CheckpointCopies() = default;
  CheckpointCopies(const CheckpointCopies&) = delete;
  CheckpointCopies& operator=(const CheckpointCopies&) = delete;

  /// A checkpoint is complete, or the job has gone back to it.
  void OnCheckpoint(std::uint64_t checkpoint);

  /// Returns whether the checkpoint that was completed last is to be copied; TakeDue names it,
  /// once: Begin follows.
  [[nodiscard]] bool IsDue() const { return due_ != 0; }
  std::uint64_t TakeDue() { return std::exchange(due_, 0); }

  /// Copies it, at once or as the next. `entries`: CheckpointSource.
  void Begin(std::uint64_t checkpoint, std::map<std::string, std::string> entries);

  /// Returns, once, how the copying of a checkpoint has ended; the next one begins.
  std::optional<Result> TakeResult();

  /// Returns those that are being copied, or are next: parameter servers must keep them.
  [[nodiscard]] std::vector<std::uint64_t> needed() const;

  /// Returns what people are told of it: that a copy has failed, as on a full disk, is an alarm,
  /// and training goes on. `epoch`: that is open.
  [[nodiscard]] controller::Note NoteOf(const Result& result, DataEpoch epoch) const;

  /// Waits for the result of what is being copied, if anything is.
  void Wait();

  /// Gives up what is being copied, soon, and what is next.
  void Stop();

 private:
  struct Copy {
    std::uint64_t checkpoint = 0;
    std::map<std::string, std::string> entries;
  };

  void Start(Copy copy);
  absl::Status Make(const Copy& copy, const std::stop_token& stop);
  void RemoveOld();

  // Constant after construction.
  const v1::TrainingJob& job_;
  const RunPaths& paths_;
  const std::uint64_t every_;
  const std::uint64_t keep_;

  // Of the one thread.
  std::uint64_t newest_;
  std::uint64_t due_ = 0;      // 0: none
  std::uint64_t since_ = 0;    // checkpoints since the last one that was copied
  std::uint64_t copying_ = 0;  // its result was not taken; 0: none
  std::optional<Copy> next_;

  // Guarded.
  Mutex mutex_;
  std::optional<Result> result_ ABSL_GUARDED_BY(mutex_);

  std::jthread thread_;  // the last: it uses the others
};

}  // namespace adamant::local
