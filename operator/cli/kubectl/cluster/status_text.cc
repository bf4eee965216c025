#include "operator/cli/kubectl/cluster/status_text.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "operator/cli/console/status_view.h"
#include "operator/cli/console/table.h"
#include "operator/cli/console/text.h"
#include "operator/cli/kubectl/cluster/read_objects.h"
#include "operator/cli/kubectl/cluster/restarts.h"
#include "operator/kube/schema/job_object.h"
#include "operator/kube_client/base/time.h"
#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kubectl {
namespace {

using kube::IntAt;
using kube::StringAt;
using OrderedJson = nlohmann::ordered_json;
using Rows = std::vector<std::vector<std::string>>;

/// Where the buckets are, out of all ShardMaps.
struct Shards {
  std::int64_t buckets = 0;
  std::int64_t without_primary = 0;
  std::int64_t largest_epoch = 0;
  std::int64_t term = 0;
  std::map<std::int64_t, std::int64_t, std::greater<>> by_copies;  // live copies → buckets
};

// "parameter-server-1": those whose pods run. nullopt: of a job that has ended or is suspended, or
// whose pods are not seen; then every copy that is recorded counts.
std::optional<std::set<std::string>> LiveServers(const StatusObjects& objects) {
  const std::string phase = PhaseOf(objects.job);
  if (objects.pods.empty() || IsOver(phase) || phase == "Suspended") {
    return std::nullopt;
  }
  std::set<std::string> live;
  for (const Json& pod : objects.pods) {
    if (StringAt(pod, {"status", "phase"}) == "Running") {
      live.insert(SlotOf(pod));
    }
  }
  return live;
}

Shards Summarise(const StatusObjects& objects) {
  const auto live = LiveServers(objects);
  const auto is_live = [&](const v1::ServerId& member) {
    return !live || live->contains("parameter-server-" + std::to_string(member.slot()));
  };
  Shards shards;
  for (const Json& object : objects.shard_maps) {
    v1::ShardMap map;
    kube::ReadShardMap(object, map).IgnoreError();  // what is readable of it counts
    shards.term = std::max(shards.term, map.term());
    for (const v1::Configuration& bucket : map.buckets()) {
      ++shards.buckets;
      ++shards.by_copies[std::count_if(bucket.members().begin(), bucket.members().end(), is_live)];
      shards.without_primary += bucket.has_primary() ? 0 : 1;
      shards.largest_epoch =
          std::max(shards.largest_epoch, static_cast<std::int64_t>(bucket.epoch()));
    }
  }
  return shards;
}

std::string ShardsText(const Shards& shards) {
  if (shards.buckets == 0) {
    return "";
  }
  std::string text = "buckets      " + std::to_string(shards.buckets) + ":";
  for (const auto& [copies, buckets] : shards.by_copies) {
    text += (text.back() == ':' ? " " : ", ") + std::to_string(buckets) + " with " +
            std::to_string(copies) + (copies == 1 ? " copy" : " copies");
  }
  if (shards.without_primary > 0) {
    text += ", " + std::to_string(shards.without_primary) + " without a primary";
  }
  return text + "; versions up to " + std::to_string(shards.largest_epoch) + ", term " +
         std::to_string(shards.term) + "\n";
}

// The job as `adamant status` knows jobs.
v1::JobStatus AsJobStatus(const Json& job) {
  v1::TrainingJobStatus status;
  kube::ReadStatus(job, status).IgnoreError();  // what is readable of it is shown
  v1::JobStatus shown;
  shown.set_name(kube::KeyOf(job).name);
  shown.set_phase(PhaseOf(job));
  shown.set_message(status.message());
  shown.set_epoch(static_cast<std::uint64_t>(status.epoch()));
  shown.set_epochs(static_cast<std::uint64_t>(status.epochs()));
  shown.set_accuracy(status.accuracy());
  shown.set_restarts(static_cast<std::uint32_t>(status.restarts()));
  shown.set_counted_examples(static_cast<std::uint64_t>(status.examples()));
  shown.set_total_examples(static_cast<std::uint64_t>(status.examples_per_epoch()));
  shown.set_training_loss(status.training_loss());
  shown.set_examples_per_second(static_cast<double>(status.examples_per_second()));
  shown.set_attempt(static_cast<std::uint64_t>(status.attempt()));
  shown.set_rate_factor(status.rate_factor());
  shown.set_divergence(status.divergence());
  shown.set_checkpoint(static_cast<std::uint64_t>(status.checkpoint().snapshot()));
  return shown;
}

std::string Age(std::string_view time, kube::WallTime now) {
  return time.empty() ? "-" : cli::FormatSeconds(SecondsSince(time, now));
}

std::string OrDash(std::string text) { return text.empty() ? "-" : std::move(text); }

std::int64_t RestartsOf(const Json& pod) {
  return std::max<std::int64_t>(0, GenerationOf(pod) - 1);
}

Rows ConditionRows(const StatusObjects& objects) {
  Rows rows = {{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}};
  for (const Json& condition : ListAt(objects.job, {"status", "conditions"})) {
    rows.push_back({StringAt(condition, {"type"}),
                    StringAt(condition, {"status"}),
                    Age(StringAt(condition, {"lastTransitionTime"}), objects.now),
                    StringAt(condition, {"reason"}),
                    StringAt(condition, {"message"})});
  }
  return rows;
}

Rows PodRows(const StatusObjects& objects) {
  Rows rows = {{"POD", "ROLE", "NODE", "STATE", "RESTARTS", "AGE"}};
  for (const Json& pod : objects.pods) {
    rows.push_back({kube::KeyOf(pod).name,
                    SlotOf(pod),
                    OrDash(StringAt(pod, {"spec", "nodeName"})),
                    StateOf(pod),
                    std::to_string(RestartsOf(pod)),
                    Age(StringAt(pod, {"metadata", "creationTimestamp"}), objects.now)});
  }
  return rows;
}

Rows ClaimRows(const StatusObjects& objects) {
  Rows rows = {{"CLAIM", "STATE", "SIZE", "VOLUME"}};
  for (const Json& claim : objects.claims) {
    rows.push_back({kube::KeyOf(claim).name,
                    StringAt(claim, {"status", "phase"}, "Pending"),
                    OrDash(StringAt(claim, {"spec", "resources", "requests", "storage"})),
                    OrDash(StringAt(claim, {"spec", "volumeName"}))});
  }
  return rows;
}

// How old this is, while it changes.
std::string ReportedText(const StatusObjects& objects) {
  const std::string reported = StringAt(objects.job, {"status", "lastReportTime"});
  std::string trouble = LeaderTrouble(objects.job, objects.lease, objects.now);
  if (reported.empty() && trouble.empty()) {
    return "";
  }
  std::string text = "reported     " + Age(reported, objects.now) + " ago";
  return text + (trouble.empty() ? "" : "; " + trouble) + "\n";
}

void AppendTable(const Rows& rows, std::string& text) {
  const std::string table = cli::Table(rows);
  text += table.empty() ? "" : "\n" + table;
}

OrderedJson ShardsJson(const Shards& shards) {
  OrderedJson by_copies = OrderedJson::object();
  for (const auto& [copies, buckets] : shards.by_copies) {
    by_copies[std::to_string(copies)] = buckets;
  }
  return {{"buckets", shards.buckets},
          {"by_copies", std::move(by_copies)},
          {"without_primary", shards.without_primary},
          {"largest_epoch", shards.largest_epoch},
          {"term", shards.term}};
}

}  // namespace

std::string StatusText(const StatusObjects& objects) {
  const std::string phase = PhaseOf(objects.job);
  if (phase.empty()) {
    const std::string trouble = LeaderTrouble(objects.job, objects.lease, objects.now);
    return kube::KeyOf(objects.job).name + ": no operator has looked at it yet" +
           (trouble.empty() ? "" : "; " + trouble) + "\n";
  }
  const bool live = !IsOver(phase) && phase != "Suspended";
  std::string text = cli::StatusText(AsJobStatus(objects.job), live);
  text += ShardsText(Summarise(objects));
  if (const std::string claim = StringAt(objects.job, {"status", "outputClaim"}); !claim.empty()) {
    text += "output       claim " + claim + "\n";
  }
  if (const std::string restarts = RestartsText(objects.job); !restarts.empty()) {
    text += "restarts     " + restarts + "\n";
  }
  text += ReportedText(objects);
  AppendTable(ConditionRows(objects), text);
  AppendTable(PodRows(objects), text);
  AppendTable(ClaimRows(objects), text);
  return text;
}

std::string StatusJson(const StatusObjects& objects) {
  const kube::ObjectKey key = kube::KeyOf(objects.job);
  OrderedJson json = {{"job", key.name},
                      {"namespace", key.ns},
                      {"status", objects.job.value("status", Json::object())},
                      {"pods", OrderedJson::array()},
                      {"claims", OrderedJson::array()},
                      {"shards", ShardsJson(Summarise(objects))}};
  for (const Json& pod : objects.pods) {
    json["pods"].push_back({{"name", kube::KeyOf(pod).name},
                            {"role", SlotOf(pod)},
                            {"node", StringAt(pod, {"spec", "nodeName"})},
                            {"state", StateOf(pod)},
                            {"restarts", RestartsOf(pod)},
                            {"created", StringAt(pod, {"metadata", "creationTimestamp"})}});
  }
  for (const Json& claim : objects.claims) {
    json["claims"].push_back(
        {{"name", kube::KeyOf(claim).name},
         {"state", StringAt(claim, {"status", "phase"}, "Pending")},
         {"size", StringAt(claim, {"spec", "resources", "requests", "storage"})},
         {"volume", StringAt(claim, {"spec", "volumeName"})}});
  }
  return json.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace adamant::kubectl
