#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/rate_limiter.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// The object that an event is about.
struct ObjectReference {
  std::string api_version;
  std::string kind;
  ObjectKey key;
  std::string uid;

  friend auto operator<=>(const ObjectReference&, const ObjectReference&) = default;
};

struct Event {
  ObjectReference object;
  bool warning = false;
  std::string reason;   ///< CamelCase, from a closed set
  std::string message;  ///< a sentence for people

  friend auto operator<=>(const Event&, const Event&) = default;
};

/// Decides what becomes of an event: a new object in the API, a higher count in the one that said
/// the same before, or nothing, as there were too many of its kind: of the same reason and object,
/// or, where it only raises a count, of the same words. So a job of many epochs does not use up the
/// events that tell of its troubles.
/// Threads: one.
/// Source: Kubernetes' client-go, tools/record, and its constants; there an object has one limit
/// for all reasons.
class EventCorrelator {
 public:
  static constexpr std::size_t kMaxEntries = 4096;    ///< events and kinds remembered
  static constexpr double kBurst = 25;                ///< events of a kind at once,
  static constexpr double kRate = 1.0 / 300;          ///< then a second
  static constexpr std::chrono::minutes kWindow{10};  ///< a longer pause begins a new event

  struct Entry {
    Event event;
    ObjectKey name;  ///< of the event's object in the API
    int count = 1;   ///< 1: to be created
    std::chrono::system_clock::time_point first;
    std::chrono::system_clock::time_point last;
  };

  explicit EventCorrelator(const Clock& clock) : clock_(clock) {}

  /// Null: it is not to be written.
  std::optional<Entry> Observe(const Event& event);

 private:
  struct Bucket {
    Bucket(double rate, double burst, const Clock& clock) : limiter(rate, burst, clock) {}

    RateLimiter limiter;
    Clock::TimePoint last;
  };
  struct Series {
    Entry entry;
    Clock::TimePoint last;
  };

  bool Allowed(const Event& kind);

  const Clock& clock_;
  std::uint64_t named_ = 0;
  std::map<Event, std::unique_ptr<Bucket>> buckets_;  // of a reason: without a message
  std::map<Event, Series> series_;
};

}  // namespace adamant::kube
