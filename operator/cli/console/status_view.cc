#include "operator/cli/console/status_view.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "operator/cli/console/text.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/counted.h"

namespace adamant::cli {
namespace {

// Members are heard once a second; it is the default of the grace, after which copies take over.
constexpr double kSilentFrom = 4;

constexpr std::size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

std::string ServerIdText(const v1::ServerId& server) {
  return std::to_string(server.slot()) + "." + std::to_string(server.incarnation());
}

std::uint64_t BucketsOf(const v1::BucketSummary& summary) {
  std::uint64_t buckets = 0;
  for (const auto& [state, count] : summary.states()) {
    buckets += count;
  }
  return buckets;
}

/// "64: 62 Ready, 2 Degraded; versions up to 7, lag at most 3", the most frequent state first.
std::string StatesText(const v1::JobStatus& status) {
  const v1::BucketSummary& summary = status.bucket_summary();
  std::vector<std::pair<std::string, std::uint32_t>> states(summary.states().begin(),
                                                            summary.states().end());
  std::sort(states.begin(), states.end(), [](const auto& a, const auto& b) {
    return std::tie(b.second, a.first) < std::tie(a.second, b.first);
  });
  std::string text = std::to_string(BucketsOf(summary)) + ":";
  for (const auto& [state, count] : states) {
    text += (text.back() == ':' ? " " : ", ") + std::to_string(count) + " " + state;
  }
  return text + Text("; versions up to %llu, lag at most %llu",
                     Wide(summary.largest_epoch()),
                     Wide(summary.largest_lag()));
}

std::string FailoverText(const v1::FailoverStatus& failover) {
  const std::string count = Counted(failover.failovers(), "time") + " a bucket was taken over";
  if (!HasLastFailover(failover)) {
    return count;
  }
  const v1::FailoverTimes& times = failover.times();
  return Text("bucket %u, %s ago: detect %s, replace %s, reconcile %s, ",
              failover.bucket(),
              FormatSeconds(failover.seconds_ago()).c_str(),
              FormatLatency(times.detect_seconds()).c_str(),
              FormatLatency(times.replace_seconds()).c_str(),
              FormatLatency(times.reconcile_seconds()).c_str()) +
         (failover.catch_up_seconds() > 0 ? "catch up " + FormatLatency(failover.catch_up_seconds())
                                          : "catching up") +
         "; " + count;
}

std::string RestoredText(std::uint64_t restores) {
  return Counted(restores, "bucket") + " read from disk over the job";
}

/// Of what was rolled back that for which no worker could make up; "" if there was none.
std::string LostText(const v1::JobStatus& status) {
  if (status.updates_lost() > 0) {
    return "lost         at least " + Counted(status.updates_lost(), "update") +
           ", which no worker could send again\n";
  }
  if (status.updates_awaited() > 0) {
    return "lost         not known yet: whether " + Counted(status.updates_awaited(), "update") +
           (status.updates_awaited() == 1 ? " is" : " are") + " sent again\n";
  }
  return status.bucket_summary().rolled_back() == 0
             ? ""
             : "lost         none that a worker knows of; what had ended with a worker is not "
               "counted\n";
}

/// What came back from disk, and what was lost with all members of a bucket; "" if there was none.
std::string RollbackText(const v1::JobStatus& status) {
  const std::uint64_t updates = status.bucket_summary().rolled_back();
  const std::uint64_t buckets = status.bucket_summary().rolled_back_buckets();
  const std::uint64_t restores = status.last_failover().restores();
  const std::string lost = LostText(status);
  if (updates > 0) {
    return "rolled back  " + Counted(updates, "update") + " in " + Counted(buckets, "bucket") +
           (restores == 0 ? "" : "; " + RestoredText(restores)) + "\n" + lost;
  }
  const std::string plainly =
      lost.empty() ? ", as each time that it goes on; no update is known to be lost\n" : "\n";
  return (restores == 0 ? "" : "restored     " + RestoredText(restores) + plainly) + lost;
}

/// Which attempt it is, why, and what it cost; "" in the first as long as training goes well.
std::string AttemptText(const v1::JobStatus& status) {
  const std::uint64_t attempt = std::max<std::uint64_t>(1, status.attempt());
  if (attempt == 1 && status.divergence().empty()) {
    return "";
  }
  std::string text = "attempt " + std::to_string(attempt);
  if (attempt > 1 && status.rate_factor() != 1) {
    text += Text(", learning rates x %.4g", status.rate_factor());
  }
  if (!status.divergence().empty()) {
    text += (attempt > 1 ? ", after: " : ": ") + status.divergence();
  } else {
    text += ", as parameters were lost";
  }
  if (status.undone_updates() > 0 || status.undone_examples() > 0) {
    text += "; " + Counted(status.undone_updates(), "update") + " (" +
            Counted(status.undone_examples(), "example") + ") undone";
  }
  return text + "\n";
}

std::string NameOf(const v1::MemberStatus& member) {
  return controller::ToString(controller::SlotId{
      .role = static_cast<controller::Role>(member.role()), .slot = member.slot()});
}

std::string MemberLine(const v1::MemberStatus& member) {
  std::string line = "  " + Text("%-20s ", NameOf(member).c_str());
  if (member.incarnation() == 0) {
    return line + member.state() + "\n";  // none has joined
  }
  line += Text("%-10s incarnation %llu", member.state().c_str(), Wide(member.incarnation()));
  if (member.silent_seconds() >= kSilentFrom) {
    line += "  silent for " + FormatSeconds(member.silent_seconds());
  }
  if (!member.metrics_address().empty()) {
    line += "  http://" + member.metrics_address() + "/metrics";
  }
  if (member.role() == v1::PARAMETER_SERVER) {
    line += Text("  primary of %u buckets, copies of %u, oldest unflushed %s",
                 member.buckets(),
                 member.copies(),
                 FormatLatency(member.oldest_unflushed_seconds()).c_str());
  }
  return line + "\n";
}

/// "0.1 1.2 +2.3": the members and, after a plus, who is about to become one.
std::string MembersText(const v1::Configuration& configuration) {
  std::string text;
  for (const v1::ServerId& member : configuration.members()) {
    text += (text.empty() ? "" : " ") + ServerIdText(member);
  }
  if (configuration.has_learner()) {
    text += (text.empty() ? "+" : " +") + ServerIdText(configuration.learner());
  }
  return text;
}

Row RowOf(const v1::BucketStatus& bucket) {
  const v1::Configuration& configuration = bucket.record();
  return {std::to_string(bucket.bucket()),
          bucket.state(),
          std::to_string(configuration.epoch()),
          std::to_string(configuration.generation()),
          configuration.has_primary() ? ServerIdText(configuration.primary()) : "-",
          MembersText(configuration),
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

bool HasLastFailover(const v1::FailoverStatus& failover) {
  return failover.failovers() > 0 && failover.epoch() > 0;
}

std::string RunPhase(const std::string& phase, bool live) {
  if (phase != controller::PhaseName(controller::Phase::kSuspended)) {
    return phase;
  }
  return live ? "Stopping" : "Stopped, can be resumed";
}

std::string StatusText(const v1::JobStatus& status, bool live) {
  std::string text = status.name() + ": " + status.phase() + "\n";
  if (status.epochs() > 0) {
    text += Text("epoch %llu of %llu, ", Wide(status.epoch()), Wide(status.epochs()));
  }
  text += status.accuracy() > 0 ? Text("top-1 %.2f%%, ", 100 * status.accuracy()) : "";
  text += Counted(status.restarts(), "restart") + "\n";
  if (!status.message().empty()) {
    text += InLines(status.message()) + "\n";
  }
  text += AttemptText(status);
  if (live) {
    if (status.total_examples() > 0) {
      text += Text("%llu of %llu examples, ",
                   Wide(status.counted_examples()),
                   Wide(status.total_examples()));
    }
    text += status.training_loss() != 0 ? Text("loss %.4f, ", status.training_loss()) : "";
    text += Text("%.0f examples/s\n", status.examples_per_second());
    if (status.batches_of_others() > 0) {
      text += Text("staleness    %.1f batches of other workers\n", status.batches_of_others());
    }
    if (!status.bucket_summary().states().empty()) {
      text += "buckets      " + StatesText(status) + "\n";
    }
  }
  if (status.last_failover().failovers() > 0) {
    text += "failover     " + FailoverText(status.last_failover()) + "\n";
  }
  text += RollbackText(status);
  if (status.checkpoint() > 0) {
    text += "checkpoint   " + std::to_string(status.checkpoint());
    if (status.checkpoint_held_seconds() > 0) {
      text += ", pushes held for " + FormatLatency(status.checkpoint_held_seconds());
    }
    text += "\n";
  }
  for (const v1::MemberStatus& member : status.members()) {
    text += member.alarm().empty()
                ? ""
                : "alarm        " + NameOf(member) + ": " + member.alarm() + "\n";
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
                            "version",
                            "generation",
                            "primary",
                            "members",
                            "committed",
                            "lag",
                            "rolled back"}};
  std::vector<v1::BucketStatus> buckets(status.buckets().begin(), status.buckets().end());
  std::sort(buckets.begin(), buckets.end(), [](const auto& a, const auto& b) {
    return a.bucket() < b.bucket();
  });
  for (const v1::BucketStatus& bucket : buckets) {
    rows.push_back(RowOf(bucket));
  }
  std::string table = Aligned(rows);
  const std::uint64_t all = BucketsOf(status.bucket_summary());
  if (all > buckets.size()) {
    table += Text("and %llu more; those that are not Ready are shown first\n",
                  Wide(all - buckets.size()));
  }
  return table;
}

}  // namespace adamant::cli
