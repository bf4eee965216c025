#include "operator/kube/pods/pod_view.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "operator/kube/api/job_identity.h"
#include "operator/kube/schema/job_object.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/exit_codes.h"
#include "services/common/base/system/ip_address.h"

namespace adamant::kube {
namespace {

using controller::LossReason;
using controller::Role;

constexpr std::size_t kLongestLine = 500;  // of a process, that is told

std::optional<Role> RoleOf(std::string_view name) {
  for (const Role role : {Role::kDataServer, Role::kParameterServer, Role::kWorker}) {
    if (controller::RoleName(role) == name) {
      return role;
    }
  }
  return std::nullopt;
}

template <class T>
bool ParseNumber(const std::string& text, T& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return !text.empty() && error == std::errc() && end == text.data() + text.size();
}

using Label = std::function<std::string(const char* name)>;

bool ReadProcess(const Label& label, ObservedPod& pod) {
  const std::optional<Role> role = RoleOf(label(kRoleLabel));
  pod.process.id.role = role.value_or(Role::kWorker);
  return role && ParseNumber(label(kSlotLabel), pod.process.id.slot) &&
         ParseNumber(label(kGenerationLabel), pod.process.generation);
}

bool ReadOutput(const std::string& snapshot, PodView& view) {
  if (snapshot == kExportOfTrial) {
    view.output = kOutputTrial;
    return true;
  }
  std::uint64_t number = 0;
  if (!ParseNumber(snapshot, number) || number == 0) {
    return false;
  }
  view.output = OutputWork{.snapshot = number};
  return true;
}

// Whether the labels name a job, and an export of it or a process.
bool ReadLabels(const Label& label, PodView& view) {
  view.job_name = label(kJobLabel);
  view.job_uid = label(kJobUidLabel);
  if (view.job_name.empty() || view.job_uid.empty()) {
    return false;
  }
  const std::string snapshot = label(kExportLabel);
  return snapshot.empty() ? ReadProcess(label, view.pod) : ReadOutput(snapshot, view);
}

const Json& StatusesIn(const Json& object, const char* list) {
  static const Json kNone = Json::array();
  const Json* found = Find(object, {"status", list});
  return found != nullptr && found->is_array() ? *found : kNone;
}

// What the node tells of our container: {"running": …}. Null while it tells nothing.
const Json* StateOfContainer(const Json& object) {
  for (const Json& status : StatusesIn(object, "containerStatuses")) {
    if (StringAt(status, {"name"}) == kContainer) {
      return Find(status, {"state"});
    }
  }
  return nullptr;
}

// Of our container; "" if it has none.
std::string MemoryLimit(const Json& object) {
  const Json* containers = Find(object, {"spec", "containers"});
  if (containers != nullptr && containers->is_array()) {
    for (const Json& container : *containers) {
      if (StringAt(container, {"name"}) == kContainer) {
        return StringAt(container, {"resources", "limits", "memory"});
      }
    }
  }
  return "";
}

// Its command cannot be run, which another node cannot either.
bool CouldNotStart(const std::string& reason) {
  return reason == "StartError" || reason == "ContainerCannotRun";
}

// Without what is blank at its ends; "" if there is none.
std::string LastLine(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r\n";
  const std::size_t last = text.find_last_not_of(kBlank);
  text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
  const std::size_t end = text.rfind('\n');
  text.remove_prefix(end == std::string_view::npos ? 0 : end + 1);
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(kBlank)));
  return std::string(text.substr(0, kLongestLine));
}

std::string HowItEnded(const Json& terminated, const std::string& memory_limit) {
  const std::string reason = StringAt(terminated, {"reason"});
  if (CouldNotStart(reason)) {
    return "could not start: " + StringAt(terminated, {"message"}, "its node gave no reason");
  }
  const std::int64_t code = IntAt(terminated, {"exitCode"});
  const std::int64_t killed = IntAt(terminated, {"signal"}, code - 128);
  std::string how = killed > 0 ? "was killed by signal " + std::to_string(killed)
                               : "exited with code " + std::to_string(code);
  if (reason == "OOMKilled") {
    how += " as memory ran out (OOMKilled" +
           (memory_limit.empty() ? "" : "; its limit is " + memory_limit) + ")";
  } else if (!reason.empty() && reason != "Error" && reason != "Completed") {
    how += " (" + reason + ")";
  }
  const std::string last = LastLine(StringAt(terminated, {"message"}));
  return code == 0 || last.empty() ? how : how + ": " + last;
}

// The end of an init container, one of the user's, that has failed; null if none has.
const Json* FailedInit(const Json& object) {
  for (const Json& status : StatusesIn(object, "initContainerStatuses")) {
    const Json* terminated = Find(status, {"state", "terminated"});
    if (terminated != nullptr && IntAt(*terminated, {"exitCode"}) != 0) {
      return terminated;
    }
  }
  return nullptr;
}

// Null where there is none of that type and status.
const Json* FindCondition(const Json& object, const char* type, const char* status) {
  for (const Json& condition : StatusesIn(object, "conditions")) {
    if (StringAt(condition, {"type"}) == type && StringAt(condition, {"status"}) == status) {
      return &condition;
    }
  }
  return nullptr;
}

bool IsDisruptionTarget(const Json& object) {
  return FindCondition(object, "DisruptionTarget", "True") != nullptr;
}

// Why a pod has not started, as far as somebody has said.
std::string WhyItWaits(const Json& object) {
  std::string why;
  if (const Json* unscheduled = FindCondition(object, "PodScheduled", "False")) {
    why = StringAt(*unscheduled, {"message"}, StringAt(*unscheduled, {"reason"}));
  }
  for (const char* list : {"initContainerStatuses", "containerStatuses"}) {
    for (const Json& status : StatusesIn(object, list)) {
      const std::string reason = StringAt(status, {"state", "waiting", "reason"});
      const bool is_usual = reason == "ContainerCreating" || reason == "PodInitializing";
      if (why.empty() && !reason.empty() && !is_usual) {
        why = reason + ": " + StringAt(status, {"state", "waiting", "message"}, "no message");
      }
    }
  }
  return why.substr(0, kLongestLine);
}

// The pod has ended, and our container has not been seen to end.
void ReadEndWithoutStatus(const Json& object, bool runs, PodView& view) {
  ObservedPod& pod = view.pod;
  pod.state = runs ? ObservedPod::State::kGone : ObservedPod::State::kEnded;  // runs: no proof
  if (const Json* init = FailedInit(object)) {
    pod.how = "did not start: an init container " + HowItEnded(*init, "");
    return;
  }
  pod.disrupted = true;  // refused, evicted or lost by its node
  pod.reason = LossReason::kEvicted;
  pod.how = "was ended by its node (" + StringAt(object, {"status", "reason"}, "no reason") +
            "): " + StringAt(object, {"status", "message"}, "no message");
}

void ReadState(const Json& object, PodView& view) {
  ObservedPod& pod = view.pod;
  const std::string phase = StringAt(object, {"status", "phase"});
  const bool over = phase == "Failed" || phase == "Succeeded";
  const Json* state = StateOfContainer(object);
  pod.deleting = !StringAt(object, {"metadata", "deletionTimestamp"}).empty();
  const bool evicted = IsDisruptionTarget(object);
  pod.disrupted = pod.deleting || evicted;
  pod.reason = evicted        ? LossReason::kEvicted
               : pod.deleting ? LossReason::kDeleted
                              : LossReason::kFailed;
  const Json* end = state != nullptr ? Find(*state, {"terminated"}) : nullptr;
  if (end != nullptr && (over || !view.group.held)) {  // Kueue takes no replacement before
    pod.state = ObservedPod::State::kEnded;
    pod.how =
        pod.deleting ? "has ended: its pod was deleted" : HowItEnded(*end, MemoryLimit(object));
    pod.exit_code = static_cast<int>(IntAt(*end, {"exitCode"}));
    if (!pod.disrupted && StringAt(*end, {"reason"}) == "OOMKilled") {
      pod.reason = LossReason::kOutOfMemory;
    }
    pod.bad_configuration =
        pod.exit_code == kBadConfiguration || CouldNotStart(StringAt(*end, {"reason"}));
  } else if (over) {
    ReadEndWithoutStatus(object, state != nullptr && state->contains("running"), view);
  } else {
    pod.state = phase == "Running" ? ObservedPod::State::kRunning : ObservedPod::State::kPending;
  }
}

// The node's count too: what a pod sends may bear them. None before the pod has its own. They are
// spelt as who assigned them likes; what they are compared with is spelt as the kernel does.
std::vector<std::string> AddressesOf(const Json& object) {
  std::vector<std::string> addresses;
  if (StringAt(object, {"status", "podIP"}).empty()) {
    return addresses;
  }
  for (const char* field : {"podIP", "hostIP"}) {
    addresses.push_back(CanonicalAddress(StringAt(object, {"status", field})));
  }
  for (const char* list : {"podIPs", "hostIPs"}) {
    for (const Json& address : StatusesIn(object, list)) {
      addresses.push_back(CanonicalAddress(StringAt(address, {"ip"})));
    }
  }
  return addresses;
}

}  // namespace

std::string PodName(const std::string& job, const controller::StartProcess& process) {
  return job + "-" + controller::ToString(process.id) + "-" + std::to_string(process.generation);
}

std::shared_ptr<const PodView> ParsePod(const Json& object) {
  auto view = std::make_shared<PodView>();
  const auto label = [&](const char* name) {
    return StringAt(object, {"metadata", "labels", name});
  };
  if (!ReadLabels(label, *view)) {
    return nullptr;
  }
  view->ns = KeyOf(object).ns;
  view->node = StringAt(object, {"spec", "nodeName"});
  view->addresses = AddressesOf(object);
  view->waits = WhyItWaits(object);
  view->group = ReadGroup(object);
  view->pod.name = StringAt(object, {"metadata", "name"});
  view->pod.uid = UidOf(object);
  ReadState(object, *view);
  return view;
}

}  // namespace adamant::kube
