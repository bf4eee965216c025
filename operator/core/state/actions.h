#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "operator/core/state/failure_rules.h"
#include "operator/core/state/messages.h"
#include "operator/core/state/state.h"
#include "services/common/base/clock.h"
#include "services/common/base/ids.h"

/// Events that happen to a JobController, and actions that it asks of the reconciler that carries
/// it (processes on one machine, pods in a cluster, a simulation).
namespace adamant::controller {

/// A control stream, numbered by the reconciler from 1, never twice.
using ConnectionId = std::uint64_t;

/// An action, and what names a process.
struct StartProcess {
  SlotId id;
  std::uint64_t generation = 0;  ///< of this slot; repeated in ProcessExited

  auto operator<=>(const StartProcess&) const = default;
};

// --- Events

struct Received {
  ConnectionId connection = 0;
  MemberMessage message;
};

struct Disconnected {
  ConnectionId connection = 0;
};

/// A process that StartProcess asked for has ended, or could not be started.
struct ProcessExited {
  SlotId id;
  std::uint64_t generation = 0;
  std::string how{};               ///< "was killed by signal 9"; continues "worker-1 …"
  bool bad_configuration = false;  ///< another start would end the same way
  bool cannot_run = false;         ///< it lacked memory or threads: its machine does not let it run
  bool proved = true;  ///< it cannot run any more; else it is only given up (its node is lost)
  LossCause cause = LossCause::kExit;
  std::optional<int> exit_code{};  ///< 128 + its number where a signal ended it; absent: not known
  LossReason reason = LossReason::kFailed;
  /// The reconciler has ended it for the next to run on another node: no rule judges that, and the
  /// next gets another volume, if it may.
  bool moves = false;
  /// Its volume was deleted: the next gets another one, whoever needs what was on it.
  bool volume_deleted = false;
};

/// The answer to Export. Unavailable: a parameter server could not be read now.
struct Exported {
  std::uint64_t snapshot = 0;
  absl::Status status;
};

/// The user wants the job to stop and to be resumed some time. May be repeated. `at_once`: without
/// a last checkpoint.
struct SuspendRequested {
  std::string reason{};
  bool at_once = false;
};

/// The user has changed the job: the number of workers (at least 1), epochs, target accuracy, the
/// deadlines, the checkpoint interval, the restart budget, the failure rules and what follows
/// divergence of `settings` count from now on; nothing else of it does.
struct SpecChanged {
  JobSettings settings{};
};

/// These processes have no room yet to start in: their time to join begins when they have.
struct ProcessesWait {
  std::vector<StartProcess> processes{};
  std::map<SlotId, std::string> why{};  ///< what is known of these and of others that do not start
};

/// In which zones nodes are that members have named, or may name.
struct ZonesKnown {
  std::map<std::string, std::string> zones{};  ///< by node
};

/// The user wants a checkpoint that begins from now on.
struct CheckpointRequested {};

/// The parameter servers are to keep these checkpoints, too, when they store others: the reconciler
/// reads them. Until others are named, or this controller ends.
struct CheckpointsHeld {
  std::vector<std::uint64_t> checkpoints{};
};

/// The reconciler cannot go on; ends the job as failed.
struct ReconcilerFailed {
  std::string reason{};
};

using adamant::Tick;

using Event = std::variant<Received,
                           Disconnected,
                           ProcessExited,
                           Exported,
                           SuspendRequested,
                           CheckpointRequested,
                           CheckpointsHeld,
                           SpecChanged,
                           ProcessesWait,
                           ZonesKnown,
                           ReconcilerFailed,
                           Tick>;

// --- Actions, to be carried out in order

/// Store these entries, all or none, and only then go on with the actions that follow.
struct Persist {
  struct Entry {
    std::string key;
    std::string value;
    friend bool operator==(const Entry&, const Entry&) = default;
  };
  std::vector<Entry> entries{};
};

struct Send {
  ConnectionId connection = 0;
  ControllerMessage message;
};

/// End the stream once what was sent before is out.
struct CloseConnection {
  ConnectionId connection = 0;
};

/// End it at once; ProcessExited follows.
struct KillProcess {
  SlotId id;
  std::uint64_t generation = 0;
};

/// Write the model of this snapshot to where the user finds it, then report Exported.
struct Export {
  std::uint64_t snapshot = 0;
};

/// A checkpoint is complete, which is stored: write its manifest to where the user finds it, and
/// remove those of snapshots that are not kept any more.
struct WriteManifest {
  Checkpoint checkpoint;   ///< snapshot 0: there is none any more
  std::uint64_t keep = 0;  ///< another snapshot that is kept; 0: none
};

/// Duration of one phase of a bucket's promotion.
struct FailoverPhase {
  enum class Kind : std::uint8_t { kDetect, kReplace, kReconcile, kCatchUp };
  Kind kind = Kind::kDetect;
  double seconds = 0;
};

inline constexpr FailoverPhase::Kind kFailoverPhases[] = {FailoverPhase::Kind::kDetect,
                                                          FailoverPhase::Kind::kReplace,
                                                          FailoverPhase::Kind::kReconcile,
                                                          FailoverPhase::Kind::kCatchUp};

/// "catch_up".
std::string_view FailoverPhaseName(FailoverPhase::Kind kind);

/// Secondaries have taken over this many buckets, which were no transfers.
struct Promoted {
  std::uint64_t buckets = 0;
};

/// An epoch has a result, which is stored.
struct EpochDone {
  EpochResult result;
};

/// Something worth telling the user and the event log.
struct Note {
  enum class Kind : std::uint8_t {
    kPhase,
    kJoined,
    kLost,
    kRestarting,
    kEpochOpened,
    kEpochClosing,
    kCheckpoint,
    kFailover,
    kRestored,
    kAlarm,
    kFailure,
    kScaled,
    kDiverged,
    kWentBack,
    kReleased,
    kWarning,  ///< of the manifest
  };
  Kind kind = Kind::kPhase;
  std::optional<SlotId> member{};
  DataEpoch epoch = 0;
  std::string text{};
  LossReason reason = LossReason::kFailed;  ///< kLost, kRestarting
};

std::string_view NoteName(Note::Kind kind);

/// All processes are gone or being killed; nothing more will be asked.
struct Finished {};

using Action = std::variant<Persist,
                            Send,
                            CloseConnection,
                            StartProcess,
                            KillProcess,
                            Export,
                            WriteManifest,
                            FailoverPhase,
                            Promoted,
                            EpochDone,
                            Note,
                            Finished>;

/// Collects the actions of one event. What must be stored comes first, whenever it was noted.
/// Threads: one thread at a time.
class Outbox {
 public:
  void Add(Action action);

  void Tell(Note::Kind kind, DataEpoch epoch, std::string text) {
    Add(Note{.kind = kind, .member = std::nullopt, .epoch = epoch, .text = std::move(text)});
  }

  void Tell(Note::Kind kind, SlotId member, std::string text) {
    Add(Note{.kind = kind, .member = member, .epoch = 0, .text = std::move(text)});
  }

  void Tell(Note::Kind kind, SlotId member, std::string text, LossReason reason) {
    Add(Note{.kind = kind, .member = member, .text = std::move(text), .reason = reason});
  }

  /// The JobState has changed in a way that must survive before the actions take effect.
  void StateChanged() { state_changed_ = true; }

  /// Stores one epoch's result beside the state.
  void Store(const EpochResult& result);

  /// The actions so far, led by one Persist if anything is to be stored; empties the box.
  std::vector<Action> Take(const JobState& state);

 private:
  bool state_changed_ = false;
  std::vector<Persist::Entry> results_;
  std::vector<Action> actions_;
};

/// Key under which Persist stores the JobState; DecodeState reads its value.
inline constexpr char kStateKey[] = "state";

/// Prefix of the keys under which Persist stores EpochResults: followed by 20 digits of the epoch
/// and, from the second attempt on, "." and the attempt.
inline constexpr char kResultPrefix[] = "epoch/";

}  // namespace adamant::controller
