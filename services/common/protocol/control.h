#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/protocol/buckets.h"
#include "services/common/protocol/format_versions.h"
#include "services/common/protocol/ids.h"
#include "services/common/protocol/work.h"

/// Messages between the processes of a job and its controller.
namespace adamant::protocol {

/// At most: bins of a histogram of staleness or update staleness, of 0 and of each power of two.
inline constexpr std::size_t kStalenessBins = 65;

// --- From members

struct Join {
  std::uint32_t format_version = kControlFormatVersion;
  SlotId id;
  std::string uid{};
  std::string address{};
  std::string metrics_address{};
  Incarnation incarnation = 0;
  std::string replication_address{};
  std::string node{};
  std::string zone{};
  std::uint64_t generation = 0;
  std::string pod_uid{};  ///< UID of the pod that it says that it runs in; empty: it says none
  std::string peer{};  ///< IP address that it came from, as its connection says; empty: not known
};

/// Number of units of a layer, and of those that are dead.
struct DeadUnits {
  std::string layer{};
  std::uint64_t units = 0;
  std::uint64_t dead = 0;

  bool operator==(const DeadUnits&) const = default;
};

struct WorkerProgress {
  std::uint64_t trained_examples = 0;
  double loss_sum = 0;
  std::uint64_t correct = 0;
  std::uint64_t pushes_acknowledged = 0;
  std::uint64_t pushes_refused = 0;
  std::uint64_t updates_lost = 0;
  std::vector<std::uint64_t> update_staleness_counts{};  ///< in updates of a shard
  DataEpoch epoch = 0;
  std::uint64_t updates_resent = 0;
  std::uint64_t retained_bytes = 0;
  double held_seconds = 0;
  std::vector<std::uint64_t> batches_of_others{};  ///< staleness
  std::vector<DeadUnits> dead_units{};
  std::string grown_layer{};
  double weight_growth = 0;
};

struct Heartbeat {
  std::variant<std::monostate, WorkerProgress, DataServerProgress, ParameterServerProgress>
      progress{};
  double busy_seconds = 0;
};

struct WorkerFlushed {
  DataEpoch epoch = 0;
};

struct PushesPaused {
  std::uint64_t checkpoint = 0;
  Sequence sequence = 0;
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
  bool fails = false;  ///< it comes no further at the moment, and is tried again
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
                                   PushesPaused,
                                   Draining,
                                   Loading>;

// --- From the controller

/// The edge adds the job and the data root.
struct Welcome {
  std::uint64_t term = 0;
  Incarnation incarnation = 0;
  std::uint64_t job_uid = 0;
  std::uint64_t training_examples = 0;  ///< of an epoch, in which the job is to count; 0: not known
  double rate_factor = 1;               ///< on the job's learning rate
  std::map<std::string, double> layer_factors{};  ///< on those that layers have of their own
  std::uint64_t attempt = 1;
  std::uint64_t schedule_epochs = 0;   ///< JobState's; 0: those of the job
  std::vector<DataFile> data_files{};  ///< JobState's, for data servers
};

struct Member {
  SlotId id;
  Incarnation incarnation = 0;
  std::string address{};
  std::string replication_address{};
  std::uint64_t generation = 0;  ///< as Join's; 0: not known
};

/// The cluster's view, sent whole whenever it changes.
struct Membership {
  std::uint64_t version = 0;
  std::vector<Member> members{};            ///< those alive now
  std::vector<Configuration> buckets{};     ///< by bucket id
  std::vector<std::uint32_t> part_owner{};  ///< by part: slot of the data server that dispatches it
  std::vector<ServerId> dead{};             ///< parameter servers that are proved to be dead
};

struct FlushWorker {
  DataEpoch epoch = 0;
};

struct PausePushes {
  std::uint64_t checkpoint = 0;
};

struct ResumePushes {
  std::uint64_t checkpoint = 0;
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
                                       PausePushes,
                                       ResumePushes>;

}  // namespace adamant::protocol
