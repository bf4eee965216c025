#include <algorithm>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "operator/cli/console/status_view.h"
#include "operator/core/state/messages.h"
#include "proto/adamant/v1/control.pb.h"

namespace adamant::cli {
namespace {

using Json = nlohmann::ordered_json;

Json ServerIdJson(const v1::ServerId& server) {
  return {{"slot", server.slot()}, {"start", server.incarnation()}};
}

/// null for a value that is not known, as before anything is trained or evaluated.
Json Known(bool is_known, double value) { return is_known ? Json(value) : Json(); }

/// null for a server that the configuration does not name.
Json ServerIdJson(bool named, const v1::ServerId& server) {
  return named ? ServerIdJson(server) : Json();
}

Json SummaryJson(const v1::BucketSummary& summary) {
  Json states = Json::object();
  for (const auto& [state, count] :
       std::map<std::string, std::uint32_t>(summary.states().begin(), summary.states().end())) {
    states[state] = count;
  }
  return {{"states", std::move(states)},
          {"largest_epoch", summary.largest_epoch()},
          {"largest_lag", summary.largest_lag()},
          {"rolled_back", summary.rolled_back()},
          {"rolled_back_buckets", summary.rolled_back_buckets()}};
}

Json BucketJson(const v1::BucketStatus& bucket) {
  const v1::Configuration& configuration = bucket.record();
  Json members = Json::array();
  for (const v1::ServerId& member : configuration.members()) {
    members.push_back(ServerIdJson(member));
  }
  return {{"bucket", bucket.bucket()},
          {"state", bucket.state()},
          {"epoch", configuration.epoch()},
          {"generation", configuration.generation()},
          {"primary", ServerIdJson(configuration.has_primary(), configuration.primary())},
          {"members", std::move(members)},
          {"learner", ServerIdJson(configuration.has_learner(), configuration.learner())},
          {"leaver", ServerIdJson(configuration.has_leaver(), configuration.leaver())},
          {"heir", ServerIdJson(configuration.has_heir(), configuration.heir())},
          {"committed", bucket.committed()},
          {"lag", bucket.lag()},
          {"rolled_back", bucket.rolled_back()}};
}

Json MemberJson(const v1::MemberStatus& member) {
  const controller::SlotId id{.role = static_cast<controller::Role>(member.role()),
                              .slot = member.slot()};
  Json json = {{"name", controller::ToString(id)},
               {"state", member.state()},
               {"start", member.incarnation()},
               {"metrics_address", member.metrics_address()},
               {"alarm", member.alarm()},
               {"silent_seconds", member.silent_seconds()}};
  if (member.role() == v1::PARAMETER_SERVER) {
    json["primaries"] = member.buckets();
    json["copies"] = member.copies();
    json["oldest_unflushed_seconds"] = member.oldest_unflushed_seconds();
  }
  return json;
}

/// null if nothing is known of it.
Json FailoverJson(const v1::FailoverStatus& failover) {
  if (!HasLastFailover(failover)) {
    return {};
  }
  const v1::FailoverTimes& times = failover.times();
  return {{"bucket", failover.bucket()},
          {"epoch", failover.epoch()},
          {"detect_seconds", times.detect_seconds()},
          {"replace_seconds", times.replace_seconds()},
          {"reconcile_seconds", times.reconcile_seconds()},
          {"catch_up_seconds", failover.catch_up_seconds()},
          {"seconds_ago", failover.seconds_ago()},
          {"failovers", failover.failovers()},
          {"restores", failover.restores()}};
}

}  // namespace

std::string StatusJson(const std::string& time, const v1::JobStatus& status, bool live) {
  const bool counts = status.counted_examples() > 0 || status.total_examples() > 0;
  Json json = {
      {"time", time},
      {"event", "status"},
      {"job", status.name()},
      {"live", live},
      {"phase", status.phase()},
      {"epoch", status.epoch()},
      {"epochs", status.epochs()},
      {"examples", counts ? Json(status.counted_examples()) : Json()},
      {"examples_total", status.total_examples() > 0 ? Json(status.total_examples()) : Json()},
      {"examples_per_second", status.examples_per_second()},
      {"training_loss", Known(status.training_loss() != 0, status.training_loss())},
      {"top1", Known(status.accuracy() > 0, status.accuracy())},
      {"restarts", status.restarts()},
      {"message", status.message()},
      {"attempt", std::max<std::uint64_t>(1, status.attempt())},
      {"rate_factor", status.attempt() > 0 ? status.rate_factor() : 1},
      {"divergence", status.divergence()},
      {"undone_updates", status.undone_updates()},
      {"undone_examples", status.undone_examples()},
      {"updates_lost", status.updates_lost()},
      {"updates_awaited", status.updates_awaited()},
      {"batches_of_others", Known(status.training_loss() != 0, status.batches_of_others())},
      {"checkpoint", status.checkpoint()},
      {"checkpoint_held_seconds", status.checkpoint_held_seconds()},
      {"last_failover", FailoverJson(status.last_failover())},
      {"failovers", status.last_failover().failovers()},
      {"restores", status.last_failover().restores()},
      {"bucket_summary", SummaryJson(status.bucket_summary())},
      {"members", Json::array()},
      {"buckets", Json::array()}};
  for (const v1::MemberStatus& member : status.members()) {
    json["members"].push_back(MemberJson(member));
  }
  for (const v1::BucketStatus& bucket : status.buckets()) {
    json["buckets"].push_back(BucketJson(bucket));
  }
  // What members say may hold anything; JSON is UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace adamant::cli
