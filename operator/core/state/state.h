#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/core/state/failure_rules.h"
#include "operator/core/state/messages.h"
#include "services/common/base/ids.h"

namespace adamant::controller {

/// Settings for what follows when training diverges.
struct OnDivergence {
  enum class Action : std::uint8_t {
    kRecover,   ///< back to the last healthy model, and on with half the rate
    kFail,      ///< the job fails
    kContinue,  ///< it is told
  };
  Action action = Action::kFail;
  std::uint32_t times = 3;  ///< kRecover: how often, before the job fails
};

/// Action that follows when not all processes start in time.
enum class OnStartDeadline : std::uint8_t {
  kRelease,  ///< all are ended, and started again later
  kFail,     ///< the job fails
};

/// Amount of a job's training. Counts are of batches.
struct JobLength {
  std::uint64_t batches = 0;  ///< of all epochs; 0: not known
  std::uint64_t warm_up = 0;  ///< of them, while the rate rises from 0
  std::uint64_t batch_size = 0;
  std::uint64_t threads = 1;  ///< that train, of all workers
};

/// Settings of a manifest that keep a net from learning, whatever the learning rate.
struct Hindrances {
  double weight_decay = 0;            ///< the largest of any layer
  bool is_of_layer = false;           ///< it is one that a layer has of its own
  std::vector<std::string> frozen{};  ///< layers that do not train
  bool all_frozen = false;            ///< no other layer has parameters
  double momentum = 0;                ///< 0: the rule has none
  bool uncorrected = false;           ///< several workers, and the numbers are taken as they are
  bool untrained_start = false;       ///< several workers fade in on weights that nobody trained
  bool rate_falls = false;            ///< the schedule ends at a lower rate than it began with
  std::optional<double> target{};  ///< spec.runPolicy.targetAccuracy, where it ended the job early
  JobLength length{};              ///< LengthOf, once a job ends
};

/// Settings of a TrainingJob that the controller needs. Immutable for the life of a job, but for
/// what SpecChanged changes.
struct JobSettings {
  std::string name{};
  std::uint32_t workers = 1;
  std::uint32_t data_servers = 1;  ///< also the number of parts of the training data
  std::uint32_t parameter_servers = 1;
  std::uint32_t buckets = 1;
  std::uint32_t copies = 1;       ///< servers that hold each bucket
  std::uint32_t min_in_sync = 1;  ///< members below which a bucket takes no update
  std::vector<std::uint64_t>
      bucket_bytes{};             ///< of the parameters in each bucket; empty: not known
  bool logged = false;            ///< updates are acknowledged from the log on disk (Wal, WalSync)
  bool workers_retain = true;     ///< what is not on a disk yet, to send it again
  bool only_checkpoints = false;  ///< nothing else of the parameters is stored (mode None)
  std::uint64_t epochs = 1;
  std::optional<double> target_accuracy{};  ///< share of validation examples, 0..1
  std::optional<std::chrono::milliseconds> active_deadline{};
  std::optional<std::chrono::milliseconds> epoch_deadline{};
  /// Time for which processes that were asked for may be missing before training begins.
  std::optional<std::chrono::milliseconds> start_deadline{};
  OnStartDeadline on_start_deadline = OnStartDeadline::kRelease;
  bool starts_together = false;  ///< all processes are asked for at once, whatever is known yet
  std::chrono::milliseconds checkpoint_interval{300'000};
  std::uint32_t restart_limit = 10;
  std::chrono::milliseconds restart_backoff{1000};
  std::vector<FailureRule> failure_rules{};
  OnDivergence on_divergence{};
  double rate = 0;                              ///< the manifest's; 0: not known
  std::map<std::string, double> layer_rates{};  ///< of layers that have one of their own
  Hindrances hindrances{};
  double chance_loss = 0;  ///< cross-entropy of a model that knows nothing; 0: not known
  std::chrono::milliseconds join_timeout{60'000};     ///< from the start of a process to its Join
  std::chrono::milliseconds silence_timeout{10'000};  ///< between two messages of a member
  std::chrono::milliseconds hang_timeout{120'000};    ///< of a member at one piece of its work
  std::chrono::milliseconds exit_delay{
      0};  ///< from a process's end to when the reconciler knows it

  std::uint64_t batch_size = 0;  ///< examples; 0: not known
  std::uint32_t threads_per_worker = 1;
  double epoch_completion = 1;  ///< share of an epoch's examples at which it may end
  double warm_up_epochs = 0;    ///< of the schedule; it is given as these or as examples
  double warm_up_examples = 0;

  /// Of an epoch. 0: only the data servers will know; they are started first.
  std::uint64_t training_examples = 0;

  /// Of CheckpointsHeld; no manifest says it.
  std::vector<std::uint64_t> held_checkpoints{};
};

enum class Phase : std::uint8_t {
  kPending,     ///< nothing started yet
  kStarting,    ///< waiting for processes and parameters
  kRunning,     ///< an epoch is open
  kEvaluating,  ///< from the end of an epoch to its result; also the export
  kSucceeded,
  kFailed,
  kSuspended,  ///< stopped by the user; can be resumed
};

std::string_view PhaseName(Phase phase);

/// Succeeded, Failed or Suspended.
bool IsFinal(Phase phase);

/// Event that the job waits for. A restarted controller sends the current step's commands again.
enum class Step : std::uint8_t {
  kTraining,      ///< for EpochEnded
  kClosing,       ///< for PartClosed of every part
  kFlushing,      ///< for WorkerFlushed of every worker
  kSnapshot,      ///< for SnapshotTaken of every parameter server
  kEvaluating,    ///< for Evaluated
  kExporting,     ///< for the reconciler to write the model
  kFirstWeights,  ///< for SnapshotTaken of every parameter server, before the first epoch
};

/// Bins of a histogram of staleness: one of 0, and one of each power of two.
using protocol::kStalenessBins;

/// One row of the job's history. Counts are of examples.
struct EpochResult {
  DataEpoch epoch = 0;
  std::uint64_t snapshot = 0;
  std::uint64_t counted = 0;
  std::uint64_t left = 0;
  std::uint64_t retrained = 0;
  std::uint64_t trained = 0;      ///< by workers, as their heartbeats told; includes what was lost
  double training_loss = 0;       ///< mean over `trained`; 0 when unknown
  double training_accuracy = 0;   ///< share of `trained`, before each update
  double seconds = 0;             ///< from the opening to the last part's close, while running
  double evaluation_seconds = 0;  ///< from then to the result
  std::uint64_t validated = 0;    ///< validation examples
  double top1 = 0;                ///< share of `validated` classified right
  double validation_loss = 0;     ///< mean over `validated`
  std::uint64_t pushes_refused = 0;
  std::uint64_t updates_lost = 0;
  std::uint32_t restarts = 0;  ///< of the job so far

  /// WorkerProgress's histogram, of this epoch: kStalenessBins at most.
  std::vector<std::uint64_t> update_staleness_counts{};
  std::uint64_t attempt = 1;  ///< one more for each time that the job went back
  /// The same of WorkerProgress::batches_of_others.
  std::vector<std::uint64_t> batches_of_others{};

  bool operator==(const EpochResult&) const = default;

  /// Workers' totals are known; else the epoch ended while no controller was there.
  [[nodiscard]] bool is_measured() const { return trained > 0; }

  /// There is an accuracy: no epoch has one that ended while no controller was there.
  [[nodiscard]] bool is_validated() const { return validated > 0; }
};

/// Totals of what workers did in an epoch, as their heartbeats told: what EpochResult has of it.
struct EpochTotals {
  DataEpoch epoch = 0;  ///< 0: of none
  std::uint64_t trained = 0;
  double loss_sum = 0;  ///< over `trained`, as `correct`
  std::uint64_t correct = 0;
  std::uint64_t pushes_refused = 0;
  std::vector<std::uint64_t> update_staleness_counts{};
  std::vector<std::uint64_t> batches_of_others{};

  bool operator==(const EpochTotals&) const = default;
};

/// Updates that a process of a worker's slot has told to be lost, all of which are counted.
struct LossesTold {
  Incarnation incarnation = 0;
  std::uint64_t updates = 0;

  bool operator==(const LossesTold&) const = default;
};

/// Updates that were rolled back while workers lived that may send them again
/// (operator/core/state/sent_again.h).
struct RolledBack {
  bool open = false;          ///< buckets came back, and workers have yet to send all again
  std::uint64_t updates = 0;  ///< as far as the controller had heard of them
  std::uint64_t lost = 0;     ///< that workers have found to be lost since
  bool worker_ended = false;  ///< what it had of them nobody counts

  bool operator==(const RolledBack&) const = default;
};

/// Facts that the controller remembers of a slot.
struct SlotRecord {
  Incarnation incarnation = 0;   ///< the last one given; 0: none
  std::string uid{};             ///< who holds it; empty: nobody
  std::uint64_t generation = 0;  ///< process starts asked for
  std::uint64_t joined = 0;      ///< incarnation of the process of this generation; 0: not joined
  std::uint64_t concluded = 0;   ///< the last generation whose loss has been judged
  std::uint32_t losses = 0;      ///< of this slot since it ran well
  std::uint64_t volume = 1;      ///< parameter servers: which of its volumes it is to use

  bool operator==(const SlotRecord&) const = default;
};

/// Facts that are known of a bucket beside its configuration. Counts are of updates.
struct BucketHistory {
  std::uint64_t updates = 0;      ///< applied, as its primary told last
  std::uint64_t rolled_back = 0;  ///< lost from memory with all members, over the job

  bool operator==(const BucketHistory&) const = default;
};

/// The last push of a worker that a checkpoint holds, in every shard.
struct PushCut {
  std::uint32_t worker = 0;  ///< slot
  Incarnation incarnation = 0;
  Sequence sequence = 0;

  bool operator==(const PushCut&) const = default;
};

/// State of a bucket in a checkpoint.
struct CheckpointBucket {
  std::uint32_t slot = 0;  ///< of the parameter server that stored it as primary
  std::uint64_t generation = 0;
  std::uint64_t updates = 0;
  std::uint64_t checksum = 0;

  bool operator==(const CheckpointBucket&) const = default;
};

/// A snapshot that every primary has stored: all parameters, optimiser states and deduplication
/// tables, and the ledger, as of one moment.
struct Checkpoint {
  std::uint64_t snapshot = 0;               ///< 0: there is none
  DataEpoch epoch = 0;                      ///< open then, or just ended
  std::vector<CheckpointBucket> buckets{};  ///< by bucket
  std::vector<PushCut> cuts{};              ///< empty at the end of an epoch: all was pushed
  std::chrono::milliseconds held{0};        ///< time for which pushes were paused

  bool operator==(const Checkpoint&) const = default;
};

/// A model that the job may go back to.
struct KeptModel {
  Checkpoint checkpoint{};      ///< without buckets: the first weights, which servers make anew
  DataEpoch epoch = 0;          ///< that is open from it on
  double top1 = 0;              ///< of the last result before it; 0: there was none
  std::uint64_t evaluated = 0;  ///< JobState::evaluated_snapshot
  std::uint64_t examples = 0;   ///< counted in the epochs that had ended
  std::uint64_t counted = 0;    ///< about as many in the epoch that is open
  double best_loss = 0;         ///< Recovery::best_loss

  bool operator==(const KeptModel&) const = default;
};

/// A layer's own learning rate, and what going back has made of it.
struct LayerRate {
  std::string layer{};
  double rate = 0;
  double factor = 1;

  bool operator==(const LayerRate&) const = default;
};

/// Going back when training diverges, or parameters are lost (operator/core/diagnosis/recovery.h).
struct Recovery {
  Checkpoint first{};         ///< the weights that the job began with
  KeptModel healthy{};        ///< to go back to: the last model found healthy, or the first weights
  KeptModel older{};          ///< the one before, where `healthy` cannot be read; may be none
  KeptModel newest{};         ///< the state's checkpoint, healthy or not
  bool found = false;         ///< `healthy` is a model of this attempt
  double best_top1 = 0;       ///< of the models found healthy since the first weights
  std::uint64_t attempt = 1;  ///< of training
  std::uint64_t times = 0;    ///< that the job went back since it was begun or resumed
  double rate_factor = 1;     ///< on the job's learning rate
  double rate = 0;            ///< that it is on; 0: not known
  std::vector<LayerRate> layer_rates{};  ///< by layer
  bool going_back = false;      ///< processes end, then the buckets come back from the checkpoint
  bool ended_diverged = false;  ///< the job: one that is resumed goes back first
  double first_loss = 0;        ///< of the attempt; 0: not known
  double best_loss = 0;         ///< of training, over a period (LossTrend); 0: not known
  std::string divergence{};     ///< what was noticed last
  std::string sign{};           ///< by which the rate of this attempt is too high, for people
  std::uint64_t undone_updates = 0;
  std::uint64_t undone_examples = 0;
  std::uint64_t counted_examples = 0;  ///< of the epochs that ended, and are not undone

  bool operator==(const Recovery&) const = default;
};

/// Way in which a job has ended, for those who say what to do next; its message says it in words.
enum class EndKind : std::uint8_t {
  kOther,          ///< none of these; or it has not ended
  kWorse,          ///< succeeded, clearly worse than in its best epoch
  kPoor,           ///< succeeded, with a model that nobody calls good
  kDidNotLearn,    ///< failed, and would again
  kLostLearned,    ///< the same, perhaps as updates were lost: it is to begin anew
  kDiverged,       ///< failed: its rate is to be lowered first
  kDivergedAgain,  ///< failed, having gone back: it does so again, at half the rate
  kAllLost,        ///< failed, with nothing to go back to: it is to begin anew
  kOutOfRestarts,  ///< failed
  kStateIsOld,     ///< failed for good: servers' disks are of a later state of the job
};

/// All that survives the controller's process, besides the EpochResults, which are stored one by
/// one.
struct JobState {
  std::uint64_t job_uid = 0;
  std::uint64_t term = 0;
  Phase phase = Phase::kPending;
  Step step = Step::kTraining;
  DataEpoch epoch = 1;
  EpochResult row;                         ///< of `epoch`, as far as it is known
  std::uint64_t last_snapshot = 0;         ///< highest id given out
  Checkpoint checkpoint{};                 ///< the newest one
  std::uint64_t evaluated_snapshot = 0;    ///< of the last result: the model to export
  double accuracy = 0;                     ///< of the last result
  DataEpoch best_epoch = 0;                ///< of those that count; 0: there is none
  double best_accuracy = 0;                ///< its
  std::vector<Configuration> buckets{};    ///< empty until assigned
  std::vector<BucketHistory> histories{};  ///< by bucket
  std::vector<ServerId> dead{};            ///< whom configurations name; sorted
  std::uint64_t failovers = 0;             ///< promotions that were no transfer
  std::uint64_t restores = 0;              ///< of buckets that had lost all replicas
  std::vector<std::uint32_t> part_owner{};
  std::uint64_t training_examples = 0;  ///< as data servers told; 0: not known
  std::vector<SlotRecord> slots{};      ///< data servers, then parameter servers, then workers
  std::uint32_t restarts = 0;           ///< of all slots, within the budget
  std::chrono::milliseconds active{0};  ///< time the job has been active
  std::chrono::milliseconds epoch_active{0};  ///< of that, since the epoch was opened
  std::chrono::milliseconds productive{0};  ///< of `active`: training got on, less what was undone
  std::string message{};                    ///< why it ended, or what it waits for
  bool invalid = false;                     ///< it ended because the data does not fit the manifest
  bool at_chance = false;  ///< the model of the last result is (operator/core/diagnosis/chance.h)
  Recovery recovery{};
  std::uint32_t releases = 0;         ///< times that it gave up to start, one after the other
  bool released = false;              ///< suspended for it, not by the user
  std::uint64_t starts = 1;           ///< one more for each time that it was resumed
  std::uint64_t schedule_epochs = 0;  ///< over which a schedule of the whole job goes, since it was
                                      ///< started or resumed; 0: not known
  std::vector<DataFile> data_files{};   ///< as the first data server that read them told
  std::uint64_t unrecorded_losses = 0;  ///< updates that are lost, of which no result tells yet
  std::uint64_t updates_lost = 0;       ///< EpochResult's, over all results
  double earlier_loss = 0;        ///< of training, in the epoch before that of `row`; 0: not known
  EndKind end = EndKind::kOther;  ///< of states before version 16 it is not known
  EpochTotals totals{};           ///< of the epoch that was opened last
  std::vector<LossesTold> losses_told{};  ///< by worker slot, of those that have told any
  RolledBack rolled_back{};

  bool operator==(const JobState&) const = default;
};

/// The stored form: format version, fields in order, XXH3.
std::string Encode(const JobState& state);
std::string Encode(const EpochResult& result);

/// Bytes of an encoded EpochResult at most.
inline constexpr std::size_t kLargestResult = 8 * (21 + 2 * kStalenessBins);

/// Reads format versions 3, which had no `at_chance`, 4, which had no attempts, 5, which kept one
/// healthy model and no loss, 6, which did not know the best epoch, 7, and 8, which were never
/// released, 9, which did not know the rates that the factor is on, 10, which did not know the
/// data's files, 11, which knew no sign of a rate that is too high, 12, which did not count what
/// was lost with all processes, 13, which did not count what was lost over the job, 14, which knew
/// no earlier loss, 15, which knew no kind of end, 16, which forgot what was counted of an open
/// epoch, and 17, which did not measure how long training got on: all of the time counts as such.
/// Errors: DataLoss when the bytes are damaged; FailedPrecondition for another format version,
/// naming both.
absl::StatusOr<JobState> DecodeState(std::string_view bytes);
absl::StatusOr<EpochResult> DecodeResult(std::string_view bytes);

/// Training examples of an epoch; 0: not known yet.
std::uint64_t TrainingExamples(const JobSettings& settings, const JobState& state);

/// Index of a slot in JobState::slots.
std::size_t SlotIndex(const JobSettings& settings, SlotId id);

/// The slot at an index.
SlotId SlotAt(const JobSettings& settings, std::size_t index);

/// Number of slots of a role.
std::uint32_t SlotCount(const JobSettings& settings, Role role);

}  // namespace adamant::controller
