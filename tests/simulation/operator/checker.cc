#include "tests/simulation/operator/checker.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "operator/kube/api/custom_resources.h"
#include "operator/kube/pods/node_view.h"
#include "operator/kube/pods/objects/pod_object.h"
#include "operator/kube/pods/pod_view.h"
#include "operator/kube/schema/job_object.h"
#include "operator/kube/storage/epoch_objects.h"
#include "operator/kube_client/base/base64.h"
#include "proto/adamant/v1/resources.pb.h"
#include "services/common/codec/buckets.h"

namespace adamant::orchestration {

using controller::JobState;
using controller::Phase;
using controller::StartProcess;
using kube::Json;
using kube::StringAt;

namespace {

// An operator may take a node to be away for as long as this when it is back.
constexpr seconds kOldNews{20};

std::string UidOfJob(const Json& object) {
  return StringAt(object, {"metadata", "labels", kube::kJobUidLabel});
}

// In an object of results.
std::string EntryOf(DataEpoch epoch) {
  const std::string digits = std::to_string(epoch);
  return kube::kEpochEntryPrefix + std::string(20 - digits.size(), '0') + digits;
}

std::string Text(const StartProcess& process) {
  return ToString(process.id) + " generation " + std::to_string(process.generation);
}

std::vector<controller::Configuration> RecordsOf(const v1::ShardMap& map) {
  std::vector<controller::Configuration> records;
  for (const v1::Configuration& bucket : map.buckets()) {
    records.push_back(codec::Decode(bucket));
  }
  return records;
}

}  // namespace

void Checker::OnChange(const kube::MemoryApiStore::Change& change) {
  if (change.resource.ends_with("/pods")) {
    OnPod(change);
  } else if (change.resource.ends_with("/configmaps") && change.after.is_null()) {
    OnConfigMapGone(change.before);
  } else if (change.resource.ends_with("/configmaps")) {
    OnResults(change.after);
    OnState(change.after);
  } else if (change.resource.ends_with("/shardmaps") && !change.after.is_null()) {
    OnShardMap(change.before, change.after);
  } else if (change.resource.ends_with("/trainingjobs") && change.after.is_null()) {
    JobOf(kube::UidOf(change.before)).deleted = true;
  } else if (change.resource.ends_with("/trainingjobs")) {
    JobOf(kube::UidOf(change.after)).losses.OnSpec(change.after["spec"], world_.scheduler.Now());
  } else if (change.resource.ends_with("/nodes") && !change.after.is_null()) {
    OnNode(change.after);
  }
}

void Checker::OnNode(const Json& node) {
  const std::string name = kube::KeyOf(node).name;
  const auto view = kube::ParseNode(node);
  if (view == nullptr || !view->ready) {
    away_[name] = Clock::TimePoint::max();
    for (auto& [uid, job] : jobs_) {
      job.losses.OnNodeAway(name);
    }
  } else if (const auto back = away_.find(name); back != away_.end()) {
    back->second = std::min(back->second, world_.scheduler.Now() + kOldNews);
  }
}

void Checker::OnPod(const kube::MemoryApiStore::Change& change) {
  const Json& pod = change.after.is_null() ? change.before : change.after;
  const bool goes =
      change.after.is_null() || change.after["metadata"].contains("deletionTimestamp");
  if (strangers_.contains(kube::UidOf(pod))) {
    if (goes) {
      Report("a pod that is not of the job was deleted");
    }
    return;
  }
  const auto view = kube::ParsePod(pod);
  if (view != nullptr && view->IsProcess()) {
    OnPodOfJob(*view, change);
  }
}

// A request that cannot be called back may make a pod again after it is gone, and so may one that
// is sent again as it had no answer; its name says so.
void Checker::OnPodOfJob(const kube::PodView& view, const kube::MemoryApiStore::Change& change) {
  const StartProcess& process = view.pod.process;
  Job& job = JobOf(view.job_uid);
  if (change.before.is_null()) {
    const bool blind = world_.delayed || world_.repeated;
    const bool again = blind && view.pod.name == kube::PodName(kJobName, process);
    if (!job.pods.insert(process).second && !again) {
      Report("a second pod was made for " + Text(process));
    }
  }
  const Clock::TimePoint now = world_.scheduler.Now();
  if (change.after.is_null()) {
    return job.losses.OnPodGone(process, now);
  }
  const auto away = away_.find(view.node);
  job.losses.OnPod(view, away != away_.end() && now < away->second, now);
}

void Checker::OnConfigMapGone(const Json& object) {
  const Job& job = JobOf(UidOfJob(object));
  const std::string name = kube::KeyOf(object).name;
  if (job.results.contains(name) && !job.deleted) {
    Report(name + " was deleted");
  }
}

// Until the state says that an epoch has ended its result may change. They go with their job; a
// controller that has not heard of that may make their object anew, with less in it.
void Checker::OnResults(const Json& object) {
  const std::string name = kube::KeyOf(object).name;
  if (name.find("-epochs-") == std::string::npos) {
    return;
  }
  Job& job = JobOf(UidOfJob(object));
  const Json results = object.value("binaryData", Json::object());
  for (const auto& [key, value] : job.results[name].items()) {
    if (key < job.first_open && results.value(key, "") != value && !job.deleted) {
      Report("the result " + key + " was dropped or has changed");
    }
  }
  job.results[name] = results;
}

void Checker::OnState(const Json& object) {
  const Json* stored = kube::Find(object, {"binaryData"});
  if (stored == nullptr || !stored->contains("state")) {
    return;  // the inputs of an export
  }
  Job& job = JobOf(UidOfJob(object));
  const auto bytes = kube::DecodeBase64(stored->at("state").get<std::string>());
  const auto state = controller::DecodeState(bytes.value_or(""));
  if (!state.ok()) {
    return Report("the stored state cannot be read: " + std::string(state.status().message()));
  }
  CheckWriter(job, state->term, object);
  if (job.state) {
    CheckState(job, *state);
  }
  const bool ended = state->step == controller::Step::kExporting;
  job.first_open = EntryOf(state->epoch + (ended ? 1 : 0));
  const auto newest = job.results.find(kube::EpochsName(kJobName, state->epoch));
  if (ended && (newest == job.results.end() || !newest->second.contains(EntryOf(state->epoch)))) {
    Report("the last epoch has ended without a result");
  }
  if (controller::IsFinal(state->phase) && (!job.state || job.state->phase != state->phase)) {
    job.ended = world_.scheduler.Now();
  }
  job.state = *state;
}

void Checker::CheckWriter(Job& job, std::uint64_t term, const Json& object) {
  const std::string writer = StringAt(object, {"metadata", "annotations", "adamant.dev/writer"});
  const auto [known, is_new] = job.writers.emplace(term, writer);
  if (known->second != writer) {
    Report("two operators have written under term " + std::to_string(term));
  }
}

void Checker::CheckState(Job& job, const JobState& now) {
  const JobState& before = *job.state;
  if (now.term < before.term) {
    Report("the term fell from " + std::to_string(before.term) + " to " + std::to_string(now.term));
  }
  if (now.epoch < before.epoch) {
    Report("the epoch fell from " + std::to_string(before.epoch));
  }
  const bool goes_on = before.phase == Phase::kSuspended && now.phase == Phase::kStarting;
  job.suspended = job.suspended || goes_on;
  const bool resumed = goes_on && !before.released;  // by the user, who gives a fresh budget
  if (now.restarts < before.restarts && !resumed) {
    Report("restarts were forgotten: " + std::to_string(before.restarts) + ", now " +
           std::to_string(now.restarts));
  }
  if (const std::string wrong = job.losses.Check(before, now, resumed, world_.scheduler.Now());
      !wrong.empty()) {
    Report(wrong);
  }
  if ((before.phase == Phase::kFailed || before.phase == Phase::kSucceeded) &&
      now.phase != before.phase) {
    Report("a job that had ended as " + std::string(PhaseName(before.phase)) + " is " +
           std::string(PhaseName(now.phase)));
  }
}

// Nobody has heard of the first assignment before the state has it: until then it may change. One
// write carries all that follows from several losses: the record may have changed more than once.
void Checker::OnShardMap(const Json& before, const Json& after) {
  v1::ShardMap now;
  if (!kube::ReadShardMap(after, now).ok()) {
    return Report("a ShardMap cannot be read");
  }
  Job& job = JobOf(UidOfJob(after));
  CheckWriter(job, static_cast<std::uint64_t>(now.term()), after);
  const bool assigned = job.state && !job.state->histories.empty();
  v1::ShardMap old;
  if (before.is_null() || UidOfJob(before) != UidOfJob(after) ||
      !kube::ReadShardMap(before, old).ok()) {
    return;
  }
  if (now.term() < old.term()) {
    Report("a ShardMap's term fell");
  }
  const auto was = RecordsOf(old);
  const auto is = RecordsOf(now);
  for (std::size_t i = 0; i < std::min(was.size(), is.size()); ++i) {
    const bool same = was[i].primary == is[i].primary && was[i].replicas == is[i].replicas &&
                      was[i].generation == is[i].generation;
    if (is[i].version < was[i].version) {
      Report("the epoch of bucket " + std::to_string(i) + " fell from " +
             std::to_string(was[i].version) + " to " + std::to_string(is[i].version));
    } else if (is[i].version == was[i].version && !same && assigned) {
      Report("the members of bucket " + std::to_string(i) + " changed within an epoch");
    }
  }
}

void Checker::OnCrash(const Json& pod) {
  const auto view = kube::ParsePod(pod);
  if (view == nullptr || !view->IsProcess()) {
    return;
  }
  Job& job = JobOf(view->job_uid);
  if (job.state && !controller::IsFinal(job.state->phase)) {
    job.losses.OnCrash(view->pod.process, *job.state, world_.scheduler.Now());
  }
}

void Checker::OnMayBeLost(const Json& pod) {
  if (const auto view = kube::ParsePod(pod); view != nullptr && view->IsProcess()) {
    JobOf(view->job_uid).losses.OnPaused(view->pod.process);
  }
}

void Checker::OnDismissed(const Json& pod) {
  if (const auto view = kube::ParsePod(pod); view != nullptr && view->IsProcess()) {
    JobOf(view->job_uid).losses.OnDismissed(view->pod.process);
  }
}

void Checker::CheckLosses(const std::string& job_uid) {
  const Job& job = JobOf(job_uid);
  if (!job.state || job.suspended || job.state->phase == Phase::kFailed) {
    return;
  }
  if (const std::string missed = job.losses.CheckMissed(*job.state, job.ended); !missed.empty()) {
    Report(missed);
  }
}

bool Checker::MayFail(const std::string& job_uid) const {
  const auto job = jobs_.find(job_uid);
  return job != jobs_.end() && job->second.losses.MayFail(world_.scheduler.Now());
}

const JobState* Checker::StateOf(const std::string& job_uid) const {
  const auto found = jobs_.find(job_uid);
  return found != jobs_.end() && found->second.state ? &*found->second.state : nullptr;
}

}  // namespace adamant::orchestration
