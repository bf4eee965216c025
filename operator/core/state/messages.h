#pragma once

#include <algorithm>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
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

/// One process of a parameter server.
struct Holder {
  std::uint32_t slot = 0;
  std::uint64_t incarnation = 0;

  auto operator<=>(const Holder&) const = default;
};

/// "parameter-server-1#4".
std::string ToString(Holder holder);

// --- From members

struct Join {
  std::uint32_t format_version = kFormatVersion;
  MemberId id;
  std::string uid{};
  std::string address{};
  std::string metrics_address{};
  std::uint64_t incarnation = 0;
  std::string replication_address{};
  std::string node{};
  std::string zone{};
  std::uint64_t generation = 0;
  std::string pod_uid{};  ///< UID of the pod that it says that it runs in; empty: it says none
  std::string peer{};  ///< IP address that it came from, as its connection says; empty: not known
};

struct DeadUnits {
  std::string layer{};
  std::uint64_t units = 0;
  std::uint64_t dead = 0;
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
  std::uint64_t updates_resent = 0;
  std::uint64_t retained_bytes = 0;
  double held_seconds = 0;
  std::vector<std::uint64_t> batches_of_others{};
  std::vector<DeadUnits> dead_units{};
  std::string grown_layer{};
  double weight_growth = 0;
};

struct DataFile {
  std::string field{};
  std::uint64_t fingerprint = 0;

  bool operator==(const DataFile&) const = default;
};

struct UnattendedEpoch {
  std::uint64_t epoch = 0;
  std::uint64_t counted = 0;
  std::uint64_t left = 0;
  std::uint64_t retrained = 0;
};

struct DataServerProgress {
  std::uint64_t epoch = 0;
  std::uint64_t counted_examples = 0;
  std::uint64_t total_examples = 0;
  std::uint64_t dealt_examples = 0;
  std::uint64_t retrained_examples = 0;
  std::uint64_t job_examples = 0;
  std::uint64_t training_examples = 0;
  std::uint64_t decided_epoch = 0;
  std::vector<UnattendedEpoch> unattended{};
  std::vector<DataFile> data_files{};
};

struct BucketProgress {
  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;
  std::uint64_t committed = 0;
  std::uint64_t lag = 0;
  std::uint64_t updates = 0;
  bool serving = false;
};

struct ParameterServerProgress {
  std::uint64_t updates_applied = 0;
  std::uint64_t dirty_bytes = 0;
  double oldest_unflushed_seconds = 0;
  std::uint64_t flushes = 0;
  std::string alarm{};
  std::vector<std::string> damages{};  ///< found on its disk since it started
  std::vector<BucketProgress> buckets{};
};

struct Heartbeat {
  std::variant<std::monostate, WorkerProgress, DataServerProgress, ParameterServerProgress>
      progress{};
  double busy_seconds = 0;
};

struct StoredBucket {
  std::uint32_t bucket = 0;
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;
  bool complete = false;
  std::string detail{};
  std::uint64_t log_epoch = 0;
  std::uint64_t log_lsn = 0;
};

struct StoredBuckets {
  std::uint64_t previous_incarnation = 0;
  std::vector<StoredBucket> buckets{};
};

struct FailoverTimes {
  double detect_seconds = 0;
  double replace_seconds = 0;
  double reconcile_seconds = 0;
};

struct BucketState {
  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;
  bool lost = false;
  std::string detail{};
  std::optional<FailoverTimes> failover{};
  std::uint64_t updates = 0;
};

struct BucketsReady {
  std::vector<BucketState> buckets{};
};

struct Proposal {
  enum class Kind : std::uint8_t { kTakeOver, kDrop, kAdd };

  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;
  Kind kind = Kind::kTakeOver;
  Holder proposer{};
  Holder subject{};
  std::uint64_t last_lsn = 0;
  bool released = false;
};

struct Proposals {
  std::vector<Proposal> proposals{};
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

struct PushesHeld {
  std::uint64_t checkpoint = 0;
  std::uint64_t sequence = 0;
};

struct SnapshotBucket {
  std::uint32_t bucket = 0;
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;
  std::uint64_t checksum = 0;
};

struct SnapshotTaken {
  std::uint64_t snapshot = 0;
  bool ok = false;
  std::string error{};
  std::vector<SnapshotBucket> buckets{};
  bool disk_full = false;
};

struct Evaluated {
  std::uint64_t epoch = 0;
  std::uint64_t snapshot = 0;
  std::uint64_t examples = 0;
  std::uint64_t correct = 0;
  double loss_sum = 0;
  std::uint64_t most_frequent = 0;  ///< examples of the class that has most of them; 0: not known
};

struct Failure {
  std::string message{};
  bool fatal = false;
  bool invalid = false;
  bool diverged = false;
};

struct Leaving {};

struct Draining {};

struct Loading {
  std::string what{};
};

using MemberMessage = std::variant<Join,
                                   Heartbeat,
                                   BucketsReady,
                                   EpochEnded,
                                   PartClosed,
                                   WorkerFlushed,
                                   SnapshotTaken,
                                   Evaluated,
                                   Failure,
                                   Leaving,
                                   StoredBuckets,
                                   Proposals,
                                   PushesHeld,
                                   Draining,
                                   Loading>;

// --- From the controller

/// The edge adds the job and the data root.
struct Welcome {
  std::uint64_t term = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t job_uid = 0;
  std::uint64_t training_examples = 0;  ///< of an epoch, in which the job is to count; 0: not known
  double rate_factor = 1;               ///< on the job's learning rate
  std::map<std::string, double> layer_factors{};  ///< on those that layers have of their own
  std::uint64_t attempt = 1;
  std::uint64_t schedule_epochs = 0;   ///< JobState's; 0: those of the job
  std::vector<DataFile> data_files{};  ///< JobState's, for data servers
};

struct Member {
  MemberId id;
  std::uint64_t incarnation = 0;
  std::string address{};
  std::string replication_address{};
};

/// The record of one bucket.
struct Bucket {
  std::uint64_t epoch = 0;
  std::uint64_t generation = 0;
  Holder primary{};
  std::vector<Holder> members{};
  bool created = false;
  std::optional<Holder> learner{};
  std::optional<Holder> leaver{};
  std::optional<Holder> heir{};
  std::uint64_t restored_snapshot = 0;

  [[nodiscard]] bool Has(Holder holder) const {
    return std::find(members.begin(), members.end(), holder) != members.end();
  }

  bool operator==(const Bucket&) const = default;
};

struct Membership {
  std::uint64_t version = 0;
  std::vector<Member> members{};
  std::vector<Bucket> buckets{};
  std::vector<std::uint32_t> part_owner{};
  std::vector<Holder> dead{};
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

struct HoldPushes {
  std::uint64_t checkpoint = 0;
};

struct ReleasePushes {
  std::uint64_t checkpoint = 0;
};

struct TakeSnapshot {
  std::uint64_t snapshot = 0;
  std::uint64_t keep_from = 0;
  std::vector<std::uint64_t> keep{};
  std::vector<std::uint64_t> writers_from{};
  std::vector<std::uint64_t> generations{};
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
                                       Refused,
                                       HoldPushes,
                                       ReleasePushes>;

}  // namespace adamant::controller
