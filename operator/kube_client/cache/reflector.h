#pragma once

#include <cstdint>

#include "operator/kube_client/api/client.h"
#include "operator/kube_client/api/resource.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/cache/watch_plan.h"
#include "services/common/base/clock.h"

namespace adamant::kube {

/// Receiver of objects that a Reflector keeps up to date.
/// Threads: called on the Reflector's.
class ObjectSink {
 public:
  virtual ~ObjectSink() = default;

  /// From here on, objects make a new copy of the collection, which takes the place of the old one
  /// at EndReplace. Another BeginReplace before that drops what there is of it.
  virtual void BeginReplace() = 0;
  virtual void EndReplace() = 0;

  virtual void Upsert(const Json& object) = 0;
  virtual void Remove(const Json& object) = 0;
};

/// Keeps an ObjectSink equal to what the API has of a selection, by WatchPlan's protocol.
/// Threads: one.
class Reflector {
 public:
  /// `sink` and `clock` must outlive this.
  Reflector(Client client,
            const Resource& resource,
            Selection selection,
            ObjectSink& sink,
            const Clock& clock,
            std::uint64_t seed);

  /// Lists, or watches until the watch ends; returns the time to wait before the next step.
  Clock::Duration Step();

 private:
  absl::Status List();
  absl::Status Watch(const WatchPlan::Action& action);
  bool OnBookmark(const Json& bookmark);
  bool OnChange(WatchEventType type, const Json& object);

  const Client client_;
  const Resource resource_;
  const Selection selection_;
  ObjectSink& sink_;
  WatchPlan plan_;
  absl::Status told_;       // in the log, of the last step
  bool replacing_ = false;  // the initial events of a WatchList are coming in
};

}  // namespace adamant::kube
