#include "operator/cli/status_view.h"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "operator/cli/text.h"
#include "operator/core/messages.h"
#include "proto/adamant/v1/control.pb.h"

namespace adamant::cli {
namespace {

constexpr std::size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

std::string Count(std::uint64_t count, const std::string& what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string HolderText(const v1::Holder& holder) {
  return std::to_string(holder.slot()) + "." + std::to_string(holder.incarnation());
}

/// "64: 62 Ready, 2 Degraded", the most frequent state first.
std::string StatesText(const v1::JobStatus& status) {
  std::map<std::string, int> counts;
  for (const v1::BucketStatus& bucket : status.buckets()) {
    ++counts[bucket.state()];
  }
  std::vector<std::pair<std::string, int>> states(counts.begin(), counts.end());
  std::stable_sort(states.begin(), states.end(), [](const auto& a, const auto& b) {
    return a.second > b.second;
  });
  std::string text = std::to_string(status.buckets_size()) + ":";
  for (const auto& [state, count] : states) {
    text += (text.back() == ':' ? " " : ", ") + std::to_string(count) + " " + state;
  }
  return text;
}

std::string FailoverText(const v1::FailoverStatus& failover) {
  const v1::FailoverTimes& times = failover.times();
  return Text("bucket %u, %s ago: detect %s, replace %s, reconcile %s, ",
              failover.bucket(),
              FormatSeconds(failover.seconds_ago()).c_str(),
              FormatLatency(times.detect_seconds()).c_str(),
              FormatLatency(times.replace_seconds()).c_str(),
              FormatLatency(times.reconcile_seconds()).c_str()) +
         (failover.catch_up_seconds() > 0 ? "catch up " + FormatLatency(failover.catch_up_seconds())
                                          : "catching up") +
         "; " + Count(failover.failovers(), "failover") + " so far";
}

/// What was lost with all members of a bucket; "" if nothing was.
std::string RollbackText(const v1::JobStatus& status) {
  std::uint64_t updates = 0;
  std::uint64_t buckets = 0;
  for (const v1::BucketStatus& bucket : status.buckets()) {
    updates += bucket.rolled_back();
    buckets += bucket.rolled_back() > 0 ? 1 : 0;
  }
  const std::uint64_t restores = status.last_failover().restores();
  if (restores == 0 && updates == 0) {
    return "";
  }
  return Count(updates, "update") + " in " + Count(buckets, "bucket") + "; " +
         Count(restores, "restore") + " from disk so far";
}

std::string MemberLine(const v1::MemberStatus& member) {
  const controller::MemberId id{.role = static_cast<controller::Role>(member.role()),
                                .slot = member.slot()};
  std::string line = Text("  %-20s %-10s start %llu",
                          controller::ToString(id).c_str(),
                          member.state().c_str(),
                          Wide(member.incarnation()));
  if (!member.metrics_address().empty()) {
    line += "  http://" + member.metrics_address() + "/metrics";
  }
  if (member.role() == v1::PARAMETER_SERVER) {
    line += Text("  primary of %u, copies %u, oldest unflushed %s",
                 member.buckets(),
                 member.copies(),
                 FormatLatency(member.oldest_unflushed_seconds()).c_str());
  }
  return line + "\n";
}

/// "0.1 1.2 +2.3": the members and, after a plus, who is about to become one.
std::string MembersText(const v1::Bucket& record) {
  std::string text;
  for (const v1::Holder& member : record.members()) {
    text += (text.empty() ? "" : " ") + HolderText(member);
  }
  if (record.has_learner()) {
    text += (text.empty() ? "+" : " +") + HolderText(record.learner());
  }
  return text;
}

Row RowOf(int index, const v1::BucketStatus& bucket) {
  const v1::Bucket& record = bucket.record();
  return {std::to_string(index),
          bucket.state(),
          std::to_string(record.epoch()),
          std::to_string(record.generation()),
          record.has_primary() ? HolderText(record.primary()) : "-",
          MembersText(record),
          std::to_string(bucket.committed()),
          std::to_string(bucket.lag()),
          std::to_string(bucket.rolled_back())};
}

/// Two spaces between columns; texts begin and numbers end below each other.
std::string Aligned(const std::vector<Row>& rows) {
  constexpr std::string_view kNumbers = "n.nn..nnn";
  static_assert(kNumbers.size() == kColumns);
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string table;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::string padding(widths[i] - row[i].size(), ' ');
      table += (i == 0 ? "" : "  ") + (kNumbers[i] == 'n' ? padding + row[i] : row[i] + padding);
    }
    table += "\n";
  }
  return table;
}

}  // namespace

std::string StatusText(const v1::JobStatus& status, bool live) {
  std::string text = status.name() + ": " + status.phase() + "\n";
  text += Text("epoch %llu of %llu, top-1 %.2f%%, ",
               Wide(status.epoch()),
               Wide(status.epochs()),
               100 * status.accuracy());
  text += Count(status.restarts(), "restart") + "\n";
  if (!status.message().empty()) {
    text += status.message() + "\n";
  }
  if (live) {
    text += Text("%llu of %llu examples, loss %.4f, %.0f examples/s\n",
                 Wide(status.counted_examples()),
                 Wide(status.total_examples()),
                 status.training_loss(),
                 status.examples_per_second());
    text += status.buckets().empty() ? "" : "buckets      " + StatesText(status) + "\n";
  }
  if (status.has_last_failover() && status.last_failover().failovers() > 0) {
    text += "failover     " + FailoverText(status.last_failover()) + "\n";
  }
  if (const std::string rollback = RollbackText(status); !rollback.empty()) {
    text += "rolled back  " + rollback + "\n";
  }
  if (status.checkpoint() > 0) {
    text += "checkpoint   " + std::to_string(status.checkpoint()) + "\n";
  }
  if (live) {
    for (const v1::MemberStatus& member : status.members()) {
      text += MemberLine(member);
    }
  }
  return text;
}

std::string BucketTable(const v1::JobStatus& status) {
  if (status.buckets().empty()) {
    return "";
  }
  std::vector<Row> rows = {{"bucket",
                            "state",
                            "epoch",
                            "generation",
                            "primary",
                            "members",
                            "committed",
                            "lag",
                            "rolled back"}};
  for (int i = 0; i < status.buckets_size(); ++i) {
    rows.push_back(RowOf(i, status.buckets(i)));
  }
  return Aligned(rows);
}

}  // namespace adamant::cli
