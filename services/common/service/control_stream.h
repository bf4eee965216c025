#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>

#include "absl/status/status.h"
#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/backoff.h"
#include "services/common/base/mutex.h"
#include "services/common/protocol/control.h"
#include "services/common/service/send_queue.h"
#include "services/common/service/service.h"
#include "services/common/service/term_watch.h"

namespace grpc {
class ClientContext;
}  // namespace grpc

namespace adamant::rpc {
struct ChannelSecurity;
}  // namespace adamant::rpc

namespace adamant::service {

/// A process's end of the control stream: joins, stays on the stream, and joins again under its
/// incarnation when it breaks. Of several controllers that answer it obeys the one of the highest
/// term that it has heard of.
/// Threads: Send, Fail, FailDiverged, EndAsReplaced, stopping and RequestStop from any; the others
/// from one.
class ControlStream final : public ControllerLink {
 public:
  /// The stream is broken; Rejoined follows when it is up again. Not before Welcome.
  struct Away {};

  /// The stream is up again after it was broken.
  struct Rejoined {};

  /// RequestStop was called.
  struct StopRequested {};

  /// Reason why the process should stop: OK after Stop, else what failed.
  struct End {
    absl::Status status;
  };
  using Event =
      std::variant<v1::Welcome, protocol::ControllerMessage, Away, Rejoined, StopRequested, End>;

  explicit ControlStream(std::string controller,
                         BackoffOptions backoff = {},
                         std::chrono::milliseconds term_interval = TermWatch::kInterval);
  ~ControlStream() override;

  /// Starts to join, with `join` but for the incarnation. `job`: which of the controller's; empty:
  /// its only one. `security`: of the way to controllers; null: plain text. Called once.
  void Join(protocol::Join join,
            std::string job = "",
            std::shared_ptr<const rpc::ChannelSecurity> security = nullptr);

  void Send(const protocol::MemberMessage& message) override;
  void Fail(const absl::Status& reason, bool fatal) override;
  void FailDiverged(const absl::Status& reason) override;
  [[nodiscard]] bool stopping() const override;

  /// As Fail, of a job that cannot run as it is: its manifest, or the data that it names, is not
  /// valid.
  void Refuse(const absl::Status& reason);

  /// Another process has this one's place: the end, as when the controller refuses to let it join.
  void EndAsReplaced(const absl::Status& reason) { EndWith(reason); }

  /// Makes Next return StopRequested, once.
  void RequestStop();

  /// Waits for what comes next from the controller: Welcome once, then messages in order. End comes
  /// before all others as soon as it is known, again and again; StopRequested before the rest.
  Event Next();

  /// The same, but nothing when nothing has come in `time`.
  std::optional<Event> NextWithin(std::chrono::milliseconds time);

  /// Sends what is queued and ends the stream, if it is up; returns within `timeout`.
  void Leave(std::chrono::milliseconds timeout);

 private:
  enum class Verdict { kGoOn, kTryAgain, kOver };

  // On the stream's thread.
  void Run();
  Verdict Attend(grpc::ClientContext& context);
  Verdict Answered(const v1::ControllerMessage& answer);
  Verdict Received(const v1::ControllerMessage& message);
  void ReportAway(std::string_view why);
  [[nodiscard]] bool IsEnding() const;

  [[nodiscard]] bool HasEvent() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Event TakeEvent() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndWith(const absl::Status& status);
  void FailWith(const absl::Status& reason, protocol::Failure failure);
  void OnTerm(std::uint64_t term);
  void AddEvent(Event event);

  // Constant after construction, or after Join.
  const std::string controller_;
  const BackoffOptions backoff_;
  const std::chrono::milliseconds term_interval_;
  protocol::Join join_;
  std::string job_;
  std::shared_ptr<const rpc::ChannelSecurity> security_;

  // Of the stream's thread.
  std::optional<v1::Welcome> welcome_;
  bool away_ = false;  // the controller, which was reported
  std::size_t attempts_ = 0;

  SendQueue queue_;

  // Guarded.
  mutable Mutex mutex_;
  CondVar changed_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  std::optional<End> end_ ABSL_GUARDED_BY(mutex_);
  bool stop_requested_ ABSL_GUARDED_BY(mutex_) = false;          // and not yet told
  grpc::ClientContext* call_ ABSL_GUARDED_BY(mutex_) = nullptr;  // the one in progress
  bool attending_ ABSL_GUARDED_BY(mutex_) = false;               // `call_` is beyond Welcome
  bool leaving_ ABSL_GUARDED_BY(mutex_) = false;
  bool running_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t term_ ABSL_GUARDED_BY(mutex_) = 0;  // the highest that was heard of

  std::optional<TermWatch> term_watch_;
  std::jthread thread_;
};

}  // namespace adamant::service
