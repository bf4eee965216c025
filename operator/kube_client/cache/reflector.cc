#include "operator/kube_client/cache/reflector.h"

#include <string>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

bool IsInitialEventsEnd(const Json& bookmark) {
  return StringAt(bookmark, {"metadata", "annotations", "k8s.io/initial-events-end"}) == "true";
}

// Ends of a watch that are part of its life.
bool IsUsual(const absl::Status& status) {
  return status.ok() || absl::IsCancelled(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

Reflector::Reflector(Client client,
                     const Resource& resource,
                     Selection selection,
                     ObjectSink& sink,
                     const Clock& clock,
                     std::uint64_t seed)
    : client_(std::move(client)),
      resource_(resource),
      selection_(std::move(selection)),
      sink_(sink),
      plan_(clock, seed) {}

Clock::Duration Reflector::Step() {
  const WatchPlan::Action action = plan_.Next();
  const absl::Status status = action.step == WatchPlan::Step::kList ? List() : Watch(action);
  if (!IsUsual(status) && status != told_) {  // not each time that it is tried again
    LogWarning("list or watch failed",
               {{"resource", resource_.plural}, {"error", status.ToString()}});
  }
  told_ = status;
  return plan_.Ended(status);
}

absl::Status Reflector::List() {
  const ListReader reader{.begin = [this] { sink_.BeginReplace(); },
                          .object = [this](const Json& object) { sink_.Upsert(object); }};
  ADAMANT_ASSIGN_OR_RETURN(std::string version, client_.List(resource_, selection_, reader));
  if (version.empty()) {
    return absl::DataLossError("a list of " + std::string(resource_.plural) +
                               " has no resourceVersion");
  }
  sink_.EndReplace();
  plan_.OnComplete(std::move(version));
  return absl::OkStatus();
}

absl::Status Reflector::Watch(const WatchPlan::Action& action) {
  replacing_ = action.step == WatchPlan::Step::kWatchList;
  if (replacing_) {
    sink_.BeginReplace();
  }
  const WatchOptions options{.resource_version = action.resource_version,
                             .initial_events = replacing_,
                             .lifetime = action.lifetime,
                             .idle = WatchPlan::kIdle};
  return client_.Watch(
      resource_, selection_, options, [this](WatchEventType type, const Json& object) {
        return type == WatchEventType::kBookmark ? OnBookmark(object) : OnChange(type, object);
      });
}

bool Reflector::OnBookmark(const Json& bookmark) {
  if (!replacing_) {
    return plan_.OnBookmark(ResourceVersionOf(bookmark));
  }
  if (IsInitialEventsEnd(bookmark)) {
    replacing_ = false;
    sink_.EndReplace();
    plan_.OnComplete(ResourceVersionOf(bookmark));
  }
  return true;
}

bool Reflector::OnChange(WatchEventType type, const Json& object) {
  // A version that goes back is of another history: what it says is not to be mixed with this one.
  if (!replacing_ && !plan_.OnChange(ResourceVersionOf(object))) {
    return false;
  }
  if (type == WatchEventType::kDeleted) {
    sink_.Remove(object);
  } else {
    sink_.Upsert(object);
  }
  return true;
}

}  // namespace adamant::kube
