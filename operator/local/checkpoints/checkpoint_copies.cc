#include "operator/local/checkpoints/checkpoint_copies.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "operator/local/checkpoints/save_checkpoint.h"
#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/failpoint.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::local {
namespace {

const v1::CheckpointCopies& WantedBy(const v1::TrainingJob& job) {
  return job.spec().output().checkpoints();
}

// Number of the checkpoint whose copy this is; 0: of none.
std::uint64_t NumberOf(const RunPaths& paths, const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const std::size_t digits = name.find_last_not_of("0123456789") + 1;
  std::uint64_t number = 0;
  std::from_chars(name.data() + digits, name.data() + name.size(), number);
  return path == paths.copy_of(number) ? number : 0;
}

// Whether a process was killed while it made this copy.
bool IsUnfinished(const RunPaths& paths, std::filesystem::path path) {
  return path.extension() == ".tmp" && NumberOf(paths, path.replace_extension()) != 0;
}

}  // namespace

CheckpointCopies::CheckpointCopies(const v1::TrainingJob& job,
                                   const RunPaths& paths,
                                   std::uint64_t newest)
    : job_(job),
      paths_(paths),
      every_(WantedBy(job).has_every() ? static_cast<std::uint64_t>(WantedBy(job).every()) : 1),
      keep_(static_cast<std::uint64_t>(WantedBy(job).keep())),
      newest_(newest) {}

void CheckpointCopies::OnCheckpoint(std::uint64_t checkpoint) {
  if (checkpoint <= newest_) {
    return;  // the job has gone back to it, or tells of it again
  }
  newest_ = checkpoint;
  ++since_;
  due_ = since_ >= every_ ? checkpoint : 0;
}

void CheckpointCopies::Begin(std::uint64_t checkpoint, std::map<std::string, std::string> entries) {
  since_ = 0;
  Copy copy{.checkpoint = checkpoint, .entries = std::move(entries)};
  if (copying_ == 0) {
    Start(std::move(copy));
  } else {
    next_ = std::move(copy);
  }
}

void CheckpointCopies::Start(Copy copy) {
  copying_ = copy.checkpoint;
  thread_ = std::jthread([this, copy = std::move(copy)](const std::stop_token& stop) {
    absl::Status status = Make(copy, stop);
    MutexLock lock(mutex_);
    result_ = Result{.checkpoint = copy.checkpoint, .status = std::move(status)};
  });
}

std::optional<CheckpointCopies::Result> CheckpointCopies::TakeResult() {
  std::optional<Result> result;
  {
    MutexLock lock(mutex_);
    result = std::exchange(result_, std::nullopt);
  }
  if (result) {
    copying_ = 0;
    if (std::optional<Copy> next = std::exchange(next_, std::nullopt)) {
      Start(*std::move(next));
    }
  }
  return result;
}

std::vector<std::uint64_t> CheckpointCopies::needed() const {
  std::vector<std::uint64_t> checkpoints;
  if (copying_ != 0) {
    checkpoints.push_back(copying_);
  }
  if (next_) {
    checkpoints.push_back(next_->checkpoint);
  }
  return checkpoints;
}

controller::Note CheckpointCopies::NoteOf(const Result& result, DataEpoch epoch) const {
  const std::string name = "checkpoint " + std::to_string(result.checkpoint);
  const std::string folder = paths_.copy_of(result.checkpoint).string();
  const bool ok = result.status.ok();
  const bool no_alarm = ok || absl::IsCancelled(result.status);
  return {.kind = no_alarm ? controller::Note::Kind::kCheckpoint : controller::Note::Kind::kAlarm,
          .member = std::nullopt,
          .epoch = epoch,
          .text = ok ? name + " is copied to " + folder
                     : name + " could not be copied to " + folder +
                           ", and training goes on: " + std::string(result.status.message())};
}

void CheckpointCopies::Wait() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void CheckpointCopies::Stop() {
  next_.reset();
  thread_.request_stop();
}

absl::Status CheckpointCopies::Make(const Copy& copy, const std::stop_token& stop) {
  ADAMANT_RETURN_IF_ERROR(ADAMANT_FAILPOINT_STATUS("checkpoint/copy"));
  std::error_code error;  // a process was killed while it copied this one
  std::filesystem::remove_all(TemporaryOf(paths_.copy_of(copy.checkpoint)), error);
  ADAMANT_RETURN_IF_ERROR(SaveCheckpoint({.job = job_, .paths = paths_, .entries = copy.entries},
                                         paths_.copy_of(copy.checkpoint),
                                         stop));
  RemoveOld();
  return absl::OkStatus();
}

// What cannot be removed stays, and is tried again after the next.
void CheckpointCopies::RemoveOld() {
  std::vector<std::uint64_t> copies;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(paths_.checkpoints(), error)) {
    if (const std::uint64_t number = NumberOf(paths_, entry.path()); number != 0) {
      copies.push_back(number);
    } else if (IsUnfinished(paths_, entry.path())) {
      std::filesystem::remove_all(entry.path(), error);
    }
  }
  std::ranges::sort(copies);
  while (copies.size() > keep_) {
    std::filesystem::remove_all(paths_.copy_of(copies.front()), error);
    copies.erase(copies.begin());
  }
}

}  // namespace adamant::local
