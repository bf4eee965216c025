#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"
#include "services/parameter_server/core/buckets/records.h"
#include "services/parameter_server/core/updates/messages.h"
#include "tests/simulation/replication/world/setup.h"

// What writers, clerks and servers say to each other.
namespace adamant::replication_simulation {

/// What a writer sends to a bucket, again and again until it is answered.
struct Push {
  std::uint64_t id = 0;       ///< never used twice
  std::uint64_t attempt = 1;  ///< of the job
  parameter_server::WorkerId writer;
  BucketId bucket = 0;
  struct Update {
    ShardId shard = 0;
    Sequence sequence = 0;
  };
  std::vector<Update> updates;
};

struct PushAnswer {
  std::uint64_t id = 0;
  BucketId bucket = 0;
  struct Ack {
    ShardId shard = 0;
    Sequence sequence = 0;  ///< that was pushed
    parameter_server::PushOutcome outcome = parameter_server::PushOutcome::kNotReady;
    std::uint64_t expected = 0;  ///< the next one
  };
  std::vector<Ack> acks;
};

/// Reads or writes a record; said again until it is answered.
struct RecordRequest {
  std::uint64_t id = 0;       ///< never used twice
  std::uint64_t attempt = 1;  ///< of the job
  std::uint32_t from = 0;     ///< of all clerks
  std::string key;
  bool put = false;
  std::uint64_t expected = 0;  ///< a put: the version until then
  std::string value;
};

struct RecordAnswer {
  std::uint64_t id = 0;
  ps::RecordAnswer answer;
};

/// Asks for the values of a bucket; nobody waits for them.
struct Fetch {
  parameter_server::WorkerId writer;
  BucketId bucket = 0;
};

}  // namespace adamant::replication_simulation
