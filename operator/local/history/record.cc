#include "operator/local/history/record.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/core/training/staleness_summary.h"

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

// A controller that was killed has lost what was trained, and the time, since its state was stored;
// what the ledger has counted is of all the time.
double ExamplesPerSecond(const EpochResult& result) {
  const std::uint64_t examples = std::min(result.counted, result.trained);
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
  const controller::StalenessSummary staleness =
      controller::Summarise(result.update_staleness_counts);
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
  json["examples_trained"] = result.trained;
  json["seconds"] = Rounded(result.seconds);
  json["evaluation_seconds"] = Rounded(result.evaluation_seconds);
  json["examples_per_second"] = Known(result.is_measured(), Rounded(ExamplesPerSecond(result)));
  json["staleness_mean"] = Known(result.is_measured(), Rounded(staleness.mean));
  json["staleness_p50"] = result.is_measured() ? Json(staleness.p50) : Json();
  json["staleness_p99"] = result.is_measured() ? Json(staleness.p99) : Json();
  json["pushes_refused"] = result.pushes_refused;
  json["updates_lost"] = result.updates_lost;
  json["restarts"] = result.restarts;
  json["snapshot"] = result.snapshot;
  json["attempt"] = result.attempt;
  json["batches_of_others_mean"] =
      Known(result.is_measured(), Rounded(controller::Summarise(result.batches_of_others).mean));
  return Dump(json);
}

std::string ProgressJson(const std::string& time, const controller::JobReport& report) {
  Json json;
  json["time"] = time;
  json["event"] = "progress";
  json["phase"] = controller::PhaseName(report.phase);
  json["epoch"] = report.epoch;
  json["epochs"] = report.epochs;
  const bool counts = report.counted_examples > 0 || report.total_examples > 0;
  json["examples"] = counts ? Json(report.counted_examples) : Json();
  json["examples_total"] = report.total_examples > 0 ? Json(report.total_examples) : Json();
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
  const controller::StalenessSummary staleness =
      controller::Summarise(result.update_staleness_counts);
  const auto count = [](std::uint64_t value) { return std::to_string(value); };
  const auto measured = [&](double value, int digits) {
    return result.is_measured() ? Fixed(value, digits) : "";
  };
  const auto quantile = [&](std::uint64_t value) {
    return result.is_measured() ? std::to_string(value) : "";
  };
  const auto validated = [&](double value) { return result.is_validated() ? Fixed(value, 6) : ""; };
  const std::string fields[] = {count(result.epoch),
                                count(result.counted),
                                count(result.left),
                                count(result.retrained),
                                count(result.trained),
                                measured(result.training_loss, 6),
                                measured(result.training_accuracy, 6),
                                validated(result.top1),
                                validated(result.validation_loss),
                                count(result.validated),
                                Fixed(result.seconds, 3),
                                Fixed(result.evaluation_seconds, 3),
                                measured(ExamplesPerSecond(result), 1),
                                measured(staleness.mean, 2),
                                quantile(staleness.p50),
                                quantile(staleness.p99),
                                count(result.pushes_refused),
                                count(result.updates_lost),
                                count(result.restarts),
                                count(result.snapshot),
                                count(result.attempt),
                                measured(controller::Summarise(result.batches_of_others).mean, 2)};
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
