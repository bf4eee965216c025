#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

/// What members and the controller say to each other: plain values that mirror
/// proto/adamant/v1/control.proto, whose comments hold here too. The edge translates.
namespace adamant::controller {

inline constexpr std::uint32_t kFormatVersion = 1;

enum class Role : std::uint8_t { kDataServer = 1, kParameterServer = 2, kWorker = 3 };

/// A position in the job that one process at a time fills.
struct MemberId {
  Role role = Role::kWorker;
  std::uint32_t slot = 0;

  auto operator<=>(const MemberId&) const = default;
};

/// "data-server", "parameter-server", "worker".
std::string_view RoleName(Role role);

/// "worker-1".
std::string ToString(MemberId id);

// --- From members

struct Join {
  std::uint32_t format_version = kFormatVersion;
  MemberId id;
  std::string uid{};
  std::string address{};
  std::string metrics_address{};
  std::uint64_t incarnation = 0;
};

struct WorkerProgress {
  std::uint64_t trained_examples = 0;
  double loss_sum = 0;
  std::uint64_t correct = 0;
  std::uint64_t pushes_acknowledged = 0;
  std::uint64_t pushes_refused = 0;
  std::uint64_t updates_lost = 0;
  std::vector<std::uint64_t> staleness_counts{};
  std::uint64_t epoch = 0;
};

struct DataServerProgress {
  std::uint64_t epoch = 0;
  std::uint64_t counted_examples = 0;
  std::uint64_t total_examples = 0;
  std::uint64_t dealt_examples = 0;
  std::uint64_t retrained_examples = 0;
  std::uint64_t job_examples = 0;
};

struct ParameterServerProgress {
  std::uint64_t updates_applied = 0;
  std::uint64_t dirty_bytes = 0;
  double oldest_unflushed_seconds = 0;
  std::uint64_t flushes = 0;
  std::string alarm{};
};

struct Heartbeat {
  std::variant<std::monostate, WorkerProgress, DataServerProgress, ParameterServerProgress>
      progress{};
};

struct BucketState {
  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;
  bool lost = false;
  std::string detail{};
};

struct BucketsReady {
  std::vector<BucketState> buckets{};
};

struct EpochEnded {
  std::uint64_t epoch = 0;
};

struct PartClosed {
  std::uint64_t epoch = 0;
  std::uint32_t part = 0;
  std::uint64_t counted_examples = 0;
  std::uint64_t left_examples = 0;
  std::uint64_t retrained_examples = 0;
};

struct WorkerFlushed {
  std::uint64_t epoch = 0;
};

struct SnapshotTaken {
  std::uint64_t snapshot = 0;
  bool ok = false;
  std::string error{};
};

struct Evaluated {
  std::uint64_t epoch = 0;
  std::uint64_t snapshot = 0;
  std::uint64_t examples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0;
};

struct Failure {
  std::string message{};
  bool fatal = false;
};

struct Leaving {};

using MemberMessage = std::variant<Join,
                                   Heartbeat,
                                   BucketsReady,
                                   EpochEnded,
                                   PartClosed,
                                   WorkerFlushed,
                                   SnapshotTaken,
                                   Evaluated,
                                   Failure,
                                   Leaving>;

// --- From the controller

/// The edge adds the job and the data root.
struct Welcome {
  std::uint64_t term = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t job_uid = 0;
};

struct Member {
  MemberId id;
  std::uint64_t incarnation = 0;
  std::string address{};
};

/// Where one bucket lives. The epoch rises whenever the record changes its primary.
struct Bucket {
  std::uint64_t epoch = 0;
  std::uint32_t primary = 0;
  bool created = false;

  bool operator==(const Bucket&) const = default;
};

struct Membership {
  std::uint64_t version = 0;
  std::vector<Member> members{};
  std::vector<Bucket> buckets{};
  std::vector<std::uint32_t> part_owner{};
};

struct OpenEpoch {
  std::uint64_t epoch = 0;
};

struct CloseEpoch {
  std::uint64_t epoch = 0;
};

struct FlushWorker {
  std::uint64_t epoch = 0;
};

struct TakeSnapshot {
  std::uint64_t snapshot = 0;
  std::uint64_t keep_from = 0;
  std::vector<std::uint64_t> keep{};
};

struct Evaluate {
  std::uint64_t epoch = 0;
  std::uint64_t snapshot = 0;
};

struct Stop {
  std::string reason{};
};

struct Refused {
  std::string reason{};
};

using ControllerMessage = std::variant<Welcome,
                                       Membership,
                                       OpenEpoch,
                                       CloseEpoch,
                                       FlushWorker,
                                       TakeSnapshot,
                                       Evaluate,
                                       Stop,
                                       Refused>;

}  // namespace adamant::controller
