#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/replica.h"

namespace adamant::parameter_server {

using std::chrono::milliseconds;
using std::chrono::seconds;

inline constexpr BucketId kBucket = 7;

struct ToPersist {
  EntryPtr entry;
  std::uint64_t ticket = 0;
};

struct Packet {
  ServerId from;
  ServerId to;
  PeerMessage message;
};

/// A server with one replica. Its content is the names of the entries that it applied.
class RigServer final : public ReplicaHost {
 public:
  RigServer(ServerId self_in, const Replica::Options& options, std::deque<Packet>& packets);

  void Send(const ServerId& to, PeerMessage message) override {
    packets_.push_back({self, to, std::move(message)});
  }
  void Propose(const Proposal& proposal) override { proposals.push_back(proposal); }
  void Persist(BucketId bucket, const EntryPtr& entry, std::uint64_t ticket) override;
  void Commit(BucketId bucket, const EntryPtr& entry) override;
  void Load(BucketId bucket, bool create) override;
  void Serving(BucketId bucket) override;
  void Demoted(BucketId bucket) override;
  void StartCopy(BucketId bucket, const ServerId& learner, std::uint64_t copy, Lsn base) override;
  void StopCopy(BucketId bucket) override;
  void Learn(BucketId bucket, const CopyBegin& begin) override;
  void Clear(BucketId bucket) override;

  const ServerId self;
  Replica replica;
  std::vector<std::string> content;
  std::vector<ToPersist> to_persist;
  std::vector<Proposal> proposals;
  std::vector<bool> loads;  ///< whether each was to create
  int served = 0;
  int demoted = 0;
  int cleared = 0;
  int stopped_copies = 0;
  int begun_copies = 0;  ///< as the learner

 private:
  std::deque<Packet>& packets_;
};

struct RigOptions {
  std::uint32_t servers = 3;
  std::uint32_t copies = 3;
  std::uint32_t min_in_sync = 1;
  Replica::Logging logging = Replica::Logging::kNothing;
  std::uint64_t max_log_bytes = 1000;
};

/// Servers, the messages between them in the test's hands, and a controller that decides at once.
/// Threads: one.
class Rig {
 public:
  /// Servers 0, 1, …; the bucket is created at server 0 and copied to as many as `copies` says.
  explicit Rig(const RigOptions& options = {});

  RigServer& operator[](std::uint32_t slot) { return *servers_.at(slot); }
  Replica& replica(std::uint32_t slot) { return servers_.at(slot)->replica; }

  // --- Time and messages

  [[nodiscard]] Clock::TimePoint now() const { return now_; }

  /// Delivers until nothing is on its way, persists, and lets the controller decide.
  void Settle();

  /// Lets time pass, ticking and settling as it goes.
  void Pass(Clock::Duration time);

  /// Lets time pass for nobody but the clock: processes are paused.
  void Sleep(Clock::Duration time) { now_ += time; }

  /// What `from` says to `to` is lost from now on.
  void Cut(std::uint32_t from, std::uint32_t to) { cut_.insert({from, to}); }
  void CutOff(std::uint32_t slot);
  void Heal() { cut_.clear(); }

  /// Loses messages that `drop` accepts.
  void Drop(std::function<bool(const Packet&)> drop) { drop_ = std::move(drop); }

  /// Takes what is on its way out of the network.
  std::deque<Packet> Take() { return std::exchange(packets, {}); }
  void Deliver(const Packet& packet);
  std::deque<Packet> packets;

  /// Ends the process; a new one, with another incarnation, takes its place and knows nothing.
  void Crash(std::uint32_t slot);
  void ProveDeaths();

  // --- Entries

  /// Appends a record of this name at `slot`; does not settle.
  Lsn Append(std::uint32_t slot, const std::string& name);

  /// Appends an update, which is called "update".
  Lsn AppendUpdate(std::uint32_t slot);

  [[nodiscard]] static PeerMessage Message(ConfigurationVersion configuration_version,
                                           decltype(PeerMessage::kind) kind) {
    return {
        .bucket = kBucket, .configuration_version = configuration_version, .kind = std::move(kind)};
  }

  // --- The controller

  Configuration record;
  bool decides = true;           ///< whether it takes proposals
  bool drops = true;             ///< whether it takes drops
  bool adds = true;              ///< whether it takes additions
  std::set<std::uint32_t> deaf;  ///< servers that hear nothing from it
  bool names_learners = true;
  bool persists = true;  ///< whether what is to be persisted is

  /// Tells everybody the record, with hints.
  void Publish();

  /// Writes a record by hand, one configuration on.
  void Write(std::uint32_t primary, const std::vector<std::uint32_t>& replicas);

  [[nodiscard]] std::vector<std::uint32_t> members() const;
  [[nodiscard]] std::uint32_t primary() const { return record.primary.slot; }

 private:
  void Decide();
  bool Apply(const Proposal& proposal);
  bool Persist();
  void CopyArrived(const Packet& packet);
  [[nodiscard]] bool Alive(const ServerId& server) const;

  RigOptions options_;
  Clock::TimePoint now_{std::chrono::hours(1)};
  std::vector<std::unique_ptr<RigServer>> servers_;
  std::vector<std::unique_ptr<RigServer>> graveyard_;
  std::set<std::pair<std::uint32_t, std::uint32_t>> cut_;
  std::function<bool(const Packet&)> drop_;
  std::vector<ServerId> dead_;
};

}  // namespace adamant::parameter_server
