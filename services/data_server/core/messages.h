#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "services/common/base/clock.h"
#include "services/common/base/ids.h"
#include "services/common/protocol/control.h"

namespace adamant::data_server {

/// Inputs and outputs of the scheduler of work: proto/adamant/v1/data_server.proto, the part of
/// control.proto that concerns the data tier, and the traffic with the record store, as plain
/// values.

using protocol::BatchId;
using protocol::CloseEpoch;
using protocol::EpochEnded;
using protocol::Evaluate;
using protocol::Evaluated;
using protocol::Lease;
using protocol::LeaseResult;
using protocol::OpenEpoch;
using protocol::PartClosed;
using protocol::WorkerId;
using protocol::WorkKind;

// --- What the scheduler is told

/// A worker has opened a stream (again). It may hold `window` batches: dispatched on this stream,
/// neither acknowledged nor handed back.
struct Hello {
  WorkerId worker;
  std::uint32_t window = 0;
};

/// The worker's stream is gone. Its leases last until they end otherwise.
struct WorkerDisconnected {
  WorkerId worker;
};

struct Acknowledge {
  WorkerId worker;
  std::vector<LeaseResult> results;
};

struct HandBack {
  WorkerId worker;
  std::vector<Lease> leases;
};

struct KeepAlive {
  WorkerId worker;
  bool controller_heard = false;  ///< its control stream is up
};

/// The control stream of this process has ended, or is up again.
struct ControllerAway {};
struct ControllerBack {};

/// The controller's view. Views arrive in the order in which they were made.
struct WorkView {
  std::vector<WorkerId> workers;
  std::vector<std::uint32_t> part_owner;  ///< by part: slot of the data server that dispatches it
};

/// Returns what of the cluster's view the scheduler needs.
WorkView WorkViewOf(const protocol::Membership& membership);

struct VersionedRecord {
  std::uint64_t version = 0;
  std::string value;
};

/// Answer to ReadRecord; no record: it is absent.
struct RecordRead {
  std::uint64_t request = 0;
  std::optional<VersionedRecord> record;
};

/// Answer to WriteRecord. `conflict`: the stored version was another one, nothing was written by
/// this call (an earlier try of it may have been).
struct RecordWritten {
  std::uint64_t request = 0;
  bool conflict = false;
  std::uint64_t version = 0;  ///< of the value written; without meaning after a conflict
};

/// Due at BatchScheduler::NextWake.
using adamant::Tick;

using Input = std::variant<Hello,
                           WorkerDisconnected,
                           Acknowledge,
                           HandBack,
                           KeepAlive,
                           ControllerAway,
                           ControllerBack,
                           WorkView,
                           OpenEpoch,
                           CloseEpoch,
                           Evaluate,
                           RecordRead,
                           RecordWritten,
                           Tick>;

// --- What the scheduler says: to workers

/// Answer to Hello. `refused` is empty: go on.
struct HelloAnswer {
  WorkerId to;
  std::string refused;
};

struct Dispatch {
  WorkerId to;
  Lease lease;
  std::uint64_t job_examples = 0;    ///< acknowledged, as known here
  std::uint64_t ahead_examples = 0;  ///< dispatched here before it, not acknowledged; half its own
  std::uint64_t snapshot = 0;        ///< for kEvaluate
  bool again = false;                ///< a worker that had it was lost
};

struct Acknowledged {
  WorkerId to;
  std::vector<Lease> leases;
  std::vector<std::uint32_t> duplicates;  ///< indices into `leases`
};

struct Drained {
  WorkerId to;
  DataEpoch epoch = 0;
};

struct EpochClosed {
  WorkerId to;
  DataEpoch epoch = 0;
};

/// The worker is not one any more: end its stream.
struct Disconnect {
  WorkerId to;
};

// --- To the controller, beside EpochEnded, PartClosed and Evaluated

/// The job cannot go on: a part's record is not what this job would have written.
struct Failed {
  std::string reason;
};

// --- To the log

/// The data tier has opened this epoch itself, as no controller is there.
struct OpenedAlone {
  DataEpoch epoch = 0;
};

// --- To the record store: each is answered once, however late, by RecordRead or RecordWritten

struct ReadRecord {
  std::uint64_t request = 0;
  std::uint32_t part = 0;
};

struct WriteRecord {
  std::uint64_t request = 0;
  std::uint32_t part = 0;
  std::uint64_t expected_version = 0;  ///< 0: the record must be absent
  std::string value;
};

using Output = std::variant<HelloAnswer,
                            Dispatch,
                            Acknowledged,
                            Drained,
                            EpochClosed,
                            Disconnect,
                            EpochEnded,
                            PartClosed,
                            Evaluated,
                            Failed,
                            OpenedAlone,
                            ReadRecord,
                            WriteRecord>;

}  // namespace adamant::data_server
