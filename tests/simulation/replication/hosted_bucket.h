#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "services/parameter_server/core/replication/replica.h"
#include "tests/simulation/replication/content.h"
#include "tests/simulation/replication/disk.h"
#include "tests/simulation/replication/world.h"

namespace adamant::replication_simulation {

/// What a bucket asks of the process that it lives in.
class BucketOwner {
 public:
  virtual ~BucketOwner() = default;

  virtual void SendToPeer(const ps::Holder& to, ps::PeerMessage message) = 0;
  virtual void SendProposal(const ps::Proposal& proposal) = 0;
  virtual void Answer(Place writer, PushAnswer answer) = 0;

  /// The bucket is served, or (`lost`) cannot be.
  virtual void ReportServing(std::uint32_t bucket, bool lost) = 0;

  /// All members of the bucket were lost: what was acknowledged before this must have survived.
  virtual Clock::TimePoint SafeBefore(std::uint32_t bucket) = 0;
};

/// One bucket at one server: a real replica, and in place of shards and storage what counts and
/// hashes. Does what the parameter server's core does around a replica.
/// Threads: one.
class HostedBucket final : public ps::ReplicaHost {
 public:
  struct Place {
    std::uint32_t bucket = 0;
    ps::Holder holder;
    LifePtr life;
    std::function<Clock::TimePoint()> now;  ///< by the process's clock
  };

  /// The references must outlive this.
  HostedBucket(World& world, const Place& place, Disk& disk, BucketOwner& owner);

  [[nodiscard]] const ps::Replica& replica() const { return *replica_; }
  [[nodiscard]] const Content* content() const { return content_ ? &*content_ : nullptr; }

  // --- What happens; after each, answers what can be answered

  void OnConfiguration(const ps::Configuration& configuration);
  void OnDead(const std::vector<ps::Holder>& dead);
  void OnPeerMessage(ps::Holder from, ps::PeerMessage message);
  void OnOpened(const ps::Holder& peer);
  void OnPush(replication_simulation::Place writer, const Push& push);
  void Tick();

  /// When Tick is due; also sends again what of a copy is not answered.
  [[nodiscard]] Clock::TimePoint NextTick() const;

  void Flush();

  /// Whether the bucket was held since the process began: then what the disk held when it began is
  /// old.
  [[nodiscard]] bool touched() const { return touched_; }

  /// A push waits for an answer.
  [[nodiscard]] bool waits() const { return !waiting_.empty(); }

  /// What it may be read as now; nullptr: not at all.
  [[nodiscard]] const Content* Readable() const;

  // --- ReplicaHost

  void Send(const ps::Holder& to, ps::PeerMessage message) override;
  void Propose(const ps::Proposal& proposal) override;
  void Persist(BucketId bucket, const ps::EntryPtr& entry, std::uint64_t number) override;
  void Commit(BucketId bucket, const ps::EntryPtr& entry) override;
  void Load(BucketId bucket, bool create) override;
  void Serving(BucketId bucket) override;
  void Demoted(BucketId bucket) override;
  void StartCopy(BucketId bucket,
                 const ps::Holder& learner,
                 std::uint64_t copy,
                 ps::Lsn base) override;
  void StopCopy(BucketId bucket) override;
  void Learn(BucketId bucket, const ps::CopyBegin& begin) override;
  void Clear(BucketId bucket) override;

 private:
  struct Waiting {
    replication_simulation::Place writer = 0;
    Push push;
    PushAnswer answer;
  };
  struct Head {
    Included included;
    ps::Lsn lsn = 0;  // of the entry that has it
  };
  struct Receiving {
    std::uint64_t copy = 0;
    std::uint64_t generation = 0;
    std::vector<std::optional<ShardState>> shards;
  };
  struct Sending {
    std::uint64_t copy = 0;
    ps::Holder learner;
    std::uint32_t next = 0;  // part that is on its way
    Clock::TimePoint again_at{};
  };

  std::unique_ptr<ps::Replica> NewReplica();
  void Settle();
  void AnswerWaiting();
  void RebuildHeads();
  ps::Lsn Judge(const Push::Update& update,
                const ps::Writer& writer,
                ps::Entry& entry,
                PushAnswer& answer);

  void OnCopyPart(const ps::Holder& from, const ps::CopyPart& part);
  void OnCopyAck(const ps::Holder& from, const ps::CopyAck& ack);
  void SendPart();
  void InstallCopy(const ps::Holder& from, std::uint32_t last);
  void Create(std::uint64_t ticket);
  void Restore(std::uint64_t ticket);
  void StoreAndServe(const Content& content, std::uint64_t ticket);
  void Store(const Content& content, bool keep_log, std::function<void()> done);

  void TraceAdoption(const ps::Holder& from, const ps::PeerMessage& message);
  void Trace(const ps::Holder& to, const ps::PeerMessage& message);

  // Faults on purpose (sabotage.cc).
  void Distort(ps::Holder& from, ps::PeerMessage& message);
  void Forge(const ps::Holder& to, const ps::PeerMessage& message);
  void CutLog(const ps::Configuration& configuration);
  void RepeatStaleAck(const ps::Holder& learner);

  World& world_;
  const Place place_;
  Disk& disk_;
  BucketOwner& owner_;
  std::unique_ptr<ps::Replica> replica_;

  std::optional<Content> content_;
  std::vector<std::map<std::uint32_t, Head>> heads_;  // by shard and writer, while serving
  std::multimap<ps::Lsn, Waiting> waiting_;
  std::optional<Receiving> receiving_;
  std::optional<Sending> sending_;
  std::uint64_t ticket_ = 0;  // changes when what is held does
  bool dirty_ = false;
  ps::Replica::Role role_ = ps::Replica::Role::kNone;  // when it was looked at last
  bool touched_ = false;

  // For faults on purpose.
  std::uint64_t last_copy_ = 0;
  std::optional<ps::Holder> proposed_learner_;
  std::map<std::pair<ps::Holder, ps::Epoch>, ps::PrepareAck> earlier_acks_;  // of learners
};

}  // namespace adamant::replication_simulation
