#include "operator/local/record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/core/staleness_summary.h"

namespace adamant::local {
namespace {

using controller::EpochResult;
using Json = nlohmann::ordered_json;

// "": there is no such number, as of a model that has diverged.
std::string Fixed(double value, int digits) {
  if (!std::isfinite(value)) {
    return "";
  }
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", digits, value);
  return text;
}

double Rounded(double value) { return std::round(value * 1e6) / 1e6; }

Json Known(bool is_known, double value) { return is_known ? Json(value) : Json(); }

// Member messages may hold anything; JSON is UTF-8.
std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

// A controller that was killed knows neither the time before nor who trained then.
double ExamplesPerSecond(const EpochResult& result) {
  const std::uint64_t examples =
      result.is_measured() ? std::min(result.counted, result.trained) : result.counted;
  return result.seconds > 0 ? static_cast<double>(examples) / result.seconds : 0;
}

std::string NoteJson(const std::string& time, const controller::Note& note) {
  Json json;
  json["time"] = time;
  json["event"] = controller::NoteName(note.kind);
  if (note.member) {
    json["member"] = controller::ToString(*note.member);
  } else {
    json["epoch"] = note.epoch;
  }
  json["text"] = note.text;
  return Dump(json);
}

std::string EpochJson(const std::string& time, const EpochResult& result) {
  const controller::StalenessSummary staleness = controller::Summarise(result.staleness_counts);
  Json json;
  json["time"] = time;
  json["event"] = "epoch";
  json["epoch"] = result.epoch;
  json["top1"] = Known(result.is_validated(), result.top1);
  json["validation_loss"] = Known(result.is_validated(), Rounded(result.validation_loss));
  json["validation_examples"] = result.validated;
  json["training_loss"] = Known(result.is_measured(), Rounded(result.training_loss));
  json["training_accuracy"] = Known(result.is_measured(), Rounded(result.training_accuracy));
  json["examples_counted"] = result.counted;
  json["examples_left"] = result.left;
  json["examples_retrained"] = result.retrained;
  json["seconds"] = Rounded(result.seconds);
  json["evaluation_seconds"] = Rounded(result.evaluation_seconds);
  json["examples_per_second"] = Rounded(ExamplesPerSecond(result));
  json["staleness_mean"] = Rounded(staleness.mean);
  json["staleness_p50"] = staleness.p50;
  json["staleness_p99"] = staleness.p99;
  json["pushes_refused"] = result.pushes_refused;
  json["updates_lost"] = result.updates_lost;
  json["restarts"] = result.restarts;
  json["snapshot"] = result.snapshot;
  json["attempt"] = result.attempt;
  json["batches_of_others_mean"] = Rounded(controller::Summarise(result.batches_of_others).mean);
  return Dump(json);
}

std::string ProgressJson(const std::string& time, const controller::JobReport& report) {
  Json json;
  json["time"] = time;
  json["event"] = "progress";
  json["phase"] = controller::PhaseName(report.phase);
  json["epoch"] = report.epoch;
  json["epochs"] = report.epochs;
  json["examples"] = report.counted_examples;
  json["examples_total"] = report.total_examples;
  json["examples_per_second"] = Rounded(report.examples_per_second);
  json["training_loss"] = Known(report.training_loss != 0, Rounded(report.training_loss));
  json["top1"] = Known(report.accuracy > 0, report.accuracy);
  return Dump(json);
}

std::string MetricsCsvHeader() {
  return "epoch,examples_counted,examples_left,examples_retrained,examples_trained,training_loss,"
         "training_accuracy,top1,validation_loss,validation_examples,seconds,evaluation_seconds,"
         "examples_per_second,staleness_mean,staleness_p50,staleness_p99,pushes_refused,"
         "updates_lost,restarts,snapshot,attempt,batches_of_others_mean\n";
}

std::string MetricsCsvRow(const EpochResult& result) {
  const controller::StalenessSummary staleness = controller::Summarise(result.staleness_counts);
  const auto count = [](std::uint64_t value) { return std::to_string(value); };
  const auto measured = [&](double value) { return result.is_measured() ? Fixed(value, 6) : ""; };
  const auto validated = [&](double value) { return result.is_validated() ? Fixed(value, 6) : ""; };
  const std::string fields[] = {count(result.epoch),
                                count(result.counted),
                                count(result.left),
                                count(result.retrained),
                                count(result.trained),
                                measured(result.training_loss),
                                measured(result.training_accuracy),
                                validated(result.top1),
                                validated(result.validation_loss),
                                count(result.validated),
                                Fixed(result.seconds, 3),
                                Fixed(result.evaluation_seconds, 3),
                                Fixed(ExamplesPerSecond(result), 1),
                                Fixed(staleness.mean, 2),
                                count(staleness.p50),
                                count(staleness.p99),
                                count(result.pushes_refused),
                                count(result.updates_lost),
                                count(result.restarts),
                                count(result.snapshot),
                                count(result.attempt),
                                Fixed(controller::Summarise(result.batches_of_others).mean, 2)};
  std::string row;
  for (const std::string& field : fields) {
    row += (row.empty() ? "" : ",") + field;
  }
  return row + "\n";
}

void SortByTime(std::vector<EpochResult>& results) {
  std::ranges::sort(results, {}, [](const EpochResult& result) {
    return std::pair(result.attempt, result.epoch);
  });
}

std::string TimeStamp() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char text[40];
  const std::size_t length = std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  std::snprintf(
      text + length, sizeof(text) - length, ".%03dZ", static_cast<int>(milliseconds % 1000));
  return text;
}

}  // namespace adamant::local
