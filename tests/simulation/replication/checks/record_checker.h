#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/buckets/bucket.h"
#include "tests/simulation/engine/violations.h"
#include "tests/simulation/replication/world/disk.h"
#include "tests/simulation/replication/world/setup.h"

namespace adamant::replication_simulation {

/// Keeps books of the records (the ledger of a job), and compares: what was answered as stored is
/// what is read, never an older one. Records do not roll back in any mode but None, where the
/// loss of all copies takes them.
/// Its numbering of promises is Checker's.
/// Threads: one.
class RecordChecker {
 public:
  /// Both must outlive this.
  RecordChecker(simulation::Violations& violations, const Setup& setup)
      : violations_(violations), setup_(setup) {}

  /// A put is committed in the present generation.
  void Committed(const ps::LoggedPut& put);

  /// A writer is told that its put is stored.
  void Stored(const std::string& key, std::uint64_t version, const std::string& value);

  /// The same, by who stood still as the bucket came back from another's disk, and has not heard.
  void StoredLate(const std::string& key, std::uint64_t version, const std::string& value);

  /// A reader is told the record.
  void Read(const std::string& key, const ps::Record& record);

  /// Who holds these serves the bucket, or could be read.
  void Serves(BucketId bucket, const ps::RecordMap& records);

  /// The bucket comes back from a disk that has these. `damaged`: what was promised to be there may
  /// be gone.
  void Restored(BucketId bucket, const ps::RecordMap& records, bool damaged);

  /// This disk has the record, or a later one, also after a loss of power.
  [[nodiscard]] bool IsStored(const Disk& disk, BucketId bucket, const ps::LoggedPut& put) const;

  /// Puts that writers were told of.
  [[nodiscard]] std::uint64_t stored() const { return stored_; }

 private:
  struct Book {
    std::map<std::uint64_t, std::string> values;  // committed, by version
    std::map<std::uint64_t, std::string> lost;    // likewise, and taken by losses of all copies
    std::uint64_t told = 0;                       // the last version that anybody knows of
  };

  void Report(const std::string& what, const std::string& key, std::uint64_t version);
  void CheckValue(const std::string& key, std::uint64_t version, const std::string& value);

  simulation::Violations& violations_;
  const Setup& setup_;
  std::map<std::string, Book> books_;
  std::uint64_t stored_ = 0;
};

}  // namespace adamant::replication_simulation
