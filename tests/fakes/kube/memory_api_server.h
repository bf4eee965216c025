#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "operator/kube_client/base/transport.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "tests/fakes/kube/memory_api_store.h"

namespace adamant::kube {

/// A Kubernetes API in memory, behind the Transport that a Client talks to: for simulations, and
/// for tests of many steps. Deterministic: names, UIDs and versions depend on the requests alone.
///
/// A watch delivers what has happened and ends, so that a simulation without threads asks again
/// when it likes; with `live` it stays open until it is cut or cancelled. Which part of the history
/// watches may see can be held back, to make caches stale.
/// Threads: any.
class MemoryApiServer final : public Transport {
 public:
  enum class Fault {
    kNone,
    kRefuse,      ///< not carried out; the connection breaks
    kInvalid,     ///< not carried out; answered with 422
    kDelay,       ///< carried out after the one who waits has done something else
    kLoseAnswer,  ///< carried out, but the connection breaks before the answer
  };

  explicit MemoryApiServer(const Clock& clock, bool live = false) : live_(live), store_(clock) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request,
                                    const Cancellation& cancellation) override;
  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request,
                                      std::chrono::milliseconds idle,
                                      const std::function<bool(std::string_view line)>& on_line,
                                      const Cancellation& cancellation) override;

  /// Is asked about every request before it is carried out; must not call back. Null: no faults.
  void SetFaults(std::function<Fault(const HttpRequest& request)> faults);

  /// May answer a request in the server's place, after the faults and under the same rule. Null:
  /// never.
  using Answer = std::function<std::optional<HttpResponse>(const HttpRequest& request)>;
  void SetAnswers(Answer answers);

  /// Is told of every change, in order, before the answer to its request goes out; must not call
  /// back. Null: nobody.
  void SetObserver(std::function<void(const MemoryApiStore::Change& change)> observer);

  /// Watches see nothing newer than `version` until it is raised or Release.
  void HoldWatches(std::uint64_t version);
  void ReleaseWatches();

  /// Breaks the watches that are open.
  void CutWatches();

  /// Watches from versions before now are refused with 410.
  void Compact();

  /// What the garbage collector of Kubernetes does.
  void CollectGarbage();

  [[nodiscard]] std::uint64_t version() const;

  /// Requests carried out or refused, but for watches.
  [[nodiscard]] std::uint64_t requests() const;

 private:
  struct Target {
    ApiPlace place;
    std::map<std::string, std::string> query;
  };

  Fault FaultOf(const HttpRequest& request);
  static absl::StatusOr<Target> Parse(std::string_view target);
  absl::StatusOr<HttpResponse> Handle(const HttpRequest& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Json> CarryOut(const HttpRequest& request, const Target& target)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Json> Read(const Target& target) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Json> List(const Target& target) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Json> Patch(const HttpRequest& request, const Target& target, Json patch)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Json> Post(const Target& target, Json body) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<Json> Delete(const Target& target, const Json& options)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void TellSince(std::size_t change) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::vector<std::string> FirstLines(const Target& target, std::uint64_t& seen) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] std::vector<std::string> NextLines(const Target& target, std::uint64_t& seen) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const bool live_;

  mutable Mutex mutex_;
  CondVar changed_;
  MemoryApiStore store_ ABSL_GUARDED_BY(mutex_);
  std::function<Fault(const HttpRequest&)> faults_ ABSL_GUARDED_BY(mutex_);
  Answer answers_ ABSL_GUARDED_BY(mutex_);
  std::function<void(const MemoryApiStore::Change&)> observer_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t horizon_ ABSL_GUARDED_BY(mutex_) = UINT64_MAX;
  std::uint64_t cuts_ ABSL_GUARDED_BY(mutex_) = 0;
  std::uint64_t requests_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace adamant::kube
