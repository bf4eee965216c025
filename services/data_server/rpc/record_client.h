#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"
#include "services/common/base/mutex.h"
#include "services/common/base/system/job_attempt.h"
#include "services/common/protocol/control.h"
#include "services/common/rpc/tls/member_security.h"
#include "services/data_server/core/messages.h"
#include "services/data_server/rpc/data_metrics.h"

namespace adamant::data_server {

/// Addresses of the buckets' primaries among the parameter servers, by bucket; "" where there is
/// none.
using BucketAddresses = std::vector<std::string>;
BucketAddresses BucketAddressesOf(const protocol::Membership& view);

/// Handlers of a request's answer, and of an error that trying again would not cure. Called on
/// threads of the client.
struct RecordHandlers {
  std::function<void(Input answer)> on_answer;
  std::function<void(const absl::Status&)> on_failure;
};

/// Reads and writes the parts' records ("ledger/<part>") on the parameter servers. A request is
/// tried again, with growing pauses, until it is answered: while the map names no primary, the
/// server cannot be reached or is not ready, or its disk is full. A write whose answer was lost may
/// thus be answered as a conflict with itself.
/// Threads: any. Starts a few, which end with it; requests under way are then given up.
class RecordClient {
 public:
  using Request = std::variant<ReadRecord, WriteRecord>;

  struct Options {
    JobAttempt job;
    rpc::MemberSecurity security;
  };

  /// `metrics` must outlive this.
  RecordClient(const Options& options, RecordHandlers handlers, const DataMetrics& metrics);
  ~RecordClient();
  RecordClient(const RecordClient&) = delete;
  RecordClient& operator=(const RecordClient&) = delete;

  /// Takes over the map; what waits is tried at once.
  void SetMap(BucketAddresses addresses);

  /// Queues a request and returns at once.
  void Submit(Request request);

 private:
  /// A parameter server that starts again should not then wait for the ledger.
  static constexpr std::chrono::milliseconds kLongestWait{500};

  struct Pending {
    Pending(Request r, std::uint64_t seed)
        : request(std::move(r)), backoff({.max = kLongestWait}, seed) {}
    Request request;
    Backoff backoff;
    Clock::TimePoint submitted;
  };
  class Connections;

  void Run();
  void Try(std::unique_ptr<Pending> pending);
  void TryLater(std::unique_ptr<Pending> pending);

  // Constant after construction.
  const JobAttempt job_;
  const RecordHandlers handlers_;
  const DataMetrics& metrics_;
  const SystemClock clock_;
  const std::unique_ptr<Connections> connections_;

  // Guarded.
  Mutex mutex_;
  CondVar changed_;
  std::multimap<Clock::TimePoint, std::unique_ptr<Pending>> queue_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;

  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace adamant::data_server
