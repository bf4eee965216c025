#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/kube/api/job_identity.h"
#include "operator/kube_client/api/client.h"
#include "services/common/base/clock.h"

namespace adamant::v1 {
class TrainingJobStatus;
}  // namespace adamant::v1

namespace adamant::kube {

/// Writes a job's status if the job still has this resourceVersion (any, if that is empty), else
/// Aborted; returns the new one. Other errors: those of the client.
absl::StatusOr<std::string> ApplyStatus(const Client& client,
                                        const JobIdentity& job,
                                        const v1::TrainingJobStatus& status,
                                        const std::string& resource_version);

/// Of a status what somebody decides by: the generation, phase, message, conditions and times.
v1::TrainingJobStatus EssentialStatus(const v1::TrainingJobStatus& status);

/// Keeps the status of a job as its controller reports it: what somebody decides by is written at
/// once, what changes all the time every 10 s, that nothing has changed every minute.
///
/// No controller writes over the status of its successor. Each write names the resourceVersion that
/// this controller's last one led to, at first that from before it read the job's state; so it is
/// refused where another has written since. Then the job is read, and after it the state is asked
/// whose the job is: a successor found later writes later, and the next attempt is refused too.
/// Users who change the job cost the same requests.
///
/// A status that the API refuses as not valid is written without what nobody decides by: else one
/// wrong number would hide for ever that the job has ended.
/// Threads: one.
class StatusWriter {
 public:
  /// Tells whether this controller still leads the job; else Aborted.
  using Check = std::function<absl::Status()>;

  StatusWriter(Client client, JobIdentity job);

  /// The job as it was seen before its state was read.
  void StartFrom(std::string resource_version) { resource_version_ = std::move(resource_version); }

  /// Returns true if the status is to be written now.
  [[nodiscard]] bool IsDue(const v1::TrainingJobStatus& status, Clock::TimePoint now);

  /// Returns when what changes all the time is written next.
  [[nodiscard]] Clock::TimePoint next_progress() const { return next_progress_; }

  /// Errors: those of the client and of `is_ours`; FailedPrecondition when the job keeps changing.
  absl::Status Write(const v1::TrainingJobStatus& status, const Check& is_ours);

  /// Returns what the API has refused of a status that was then written in part, as it has to be
  /// told: once until the reason is another one.
  std::optional<std::string> TakeRefusal() { return std::exchange(refusal_, std::nullopt); }

 private:
  absl::StatusOr<std::string> TryToWrite(const v1::TrainingJobStatus& status, const Check& is_ours);
  void NoteRefusal(const absl::Status& why);
  absl::Status Refresh();

  const Client client_;
  const JobIdentity job_;
  std::string resource_version_;
  std::string written_;           // the status as it was written last, without what time changes
  std::string written_decisive_;  // without what changes all the time
  Clock::TimePoint next_progress_{};
  Clock::TimePoint next_report_{};
  std::string refused_;  // why, as it was told last
  std::optional<std::string> refusal_;
};

}  // namespace adamant::kube
