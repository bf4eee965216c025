#include "tests/processes/load_report.h"

#include <nlohmann/json.hpp>

#include "services/common/base/log.h"
#include "services/common/base/system/files.h"

namespace adamant::processes {
namespace {

using nlohmann::json;

double SecondsOf(CommitTimes::TimePoint time) {
  return std::chrono::duration<double>(time.time_since_epoch()).count();
}

void WriteJson(const std::filesystem::path& path, const json& content) {
  if (const absl::Status status = WriteFileAtomically(path, content.dump() + "\n"); !status.ok()) {
    LogError("cannot write", {{"why", status.ToString()}});
  }
}

}  // namespace

void WriteProgress(const std::filesystem::path& folder,
                   const LoadBook::Counts& counts,
                   const std::map<std::string, std::uint64_t>& answers,
                   const CommitTimes& times) {
  json last = json::object();
  for (const auto& [bucket, time] : times.last()) {
    last[std::to_string(bucket)] = SecondsOf(time);
  }
  WriteJson(folder / "progress.json",
            {{"acknowledged", counts.acknowledged},
             {"unanswered", counts.unanswered},
             {"rolled_back", counts.rolled_back},
             {"answers", answers},
             {"last", last}});
}

void WriteReport(const std::filesystem::path& folder, const LoadReport& report) {
  const LoadBook::Counts& counts = report.counts;
  json gaps = json::array();
  for (const CommitTimes::Gap& gap : report.times.gaps()) {
    gaps.push_back(
        {{"bucket", gap.bucket}, {"from", SecondsOf(gap.from)}, {"to", SecondsOf(gap.to)}});
  }
  json rollbacks = json::array();
  for (const Rollback& rollback : report.rollbacks) {
    rollbacks.push_back({{"bucket", rollback.bucket}, {"oldest", SecondsOf(rollback.oldest)}});
  }
  const auto milliseconds_of = [&](double share) {
    return static_cast<double>(report.times.Quantile(share).count()) / 1000;
  };
  WriteJson(folder / "report.json",
            {{"acknowledged", counts.acknowledged},
             {"refused", counts.refused},
             {"unanswered", counts.unanswered},
             {"rolled_back", counts.rolled_back},
             {"lost", counts.lost},
             {"reads", report.reads},
             {"stale_reads", report.stale_reads},
             {"violations", report.violations},
             {"latency_ms", {{"p50", milliseconds_of(0.5)}, {"p99", milliseconds_of(0.99)}}},
             {"gaps", gaps},
             {"rollbacks", rollbacks}});
}

}  // namespace adamant::processes
