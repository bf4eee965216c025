#include "operator/core/buckets/balancer.h"

#include <algorithm>
#include <tuple>

namespace adamant::controller {
namespace {

using Server = Balancer::Server;

// Makes one set of hints. Loads are counted as if all hints had been followed.
class Planner {
 public:
  Planner(const JobSettings& settings,
          const std::vector<Server>& servers,
          const Configurations& configurations,
          bool may_return)
      : settings_(settings),
        servers_(servers),
        configurations_(configurations),
        may_return_(may_return),
        load_(configurations.all(), static_cast<std::uint32_t>(servers.size())),
        moves_(servers.size()),
        hints_(configurations.size()) {}

  std::vector<PlacementHint> Run() {
    ForEach(&Planner::Keep);
    // All second copies before any third: a bucket with one copy may be below minInSync, and blocks
    // the job.
    for (missing_ = settings_.copies; missing_ > 0 && !waits_; --missing_) {
      ForEach(&Planner::FillUp);
    }
    ForEach(&Planner::Thin);
    ForEach(&Planner::Transfer);
    ForEach(&Planner::LetGo);
    if (std::all_of(servers_.begin(), servers_.end(), [](const Server& server) {
          return server.running && !server.draining;
        })) {
      ForEach(&Planner::Scatter);
      ForEach(&Planner::EvenCopies);
      ForEach(&Planner::EvenPrimaries);
    }
    return std::move(hints_);
  }

 private:
  void ForEach(void (Planner::*step)(BucketId)) {
    for (BucketId bucket = 0; bucket < configurations_.size(); ++bucket) {
      (this->*step)(bucket);
    }
  }

  [[nodiscard]] bool IsUsable(const ServerId& server_id) const {
    const Server& server = servers_[server_id.slot];
    return server.running && !server.draining && server.id == server_id;
  }

  // Earlier hint that still makes sense; it is not taken back halfway.
  void Keep(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    PlacementHint& hint = hints_[bucket];
    if (configuration.learner && IsUsable(*configuration.learner)) {
      hint.learner = configuration.learner;
      CountMove(bucket, *configuration.learner);
    } else if (configuration.learner) {
      --load_.copies[configuration.learner->slot];
    }
    if (configuration.departing && (configuration.replicas.size() > settings_.copies ||
                                    CanDrain(configuration, *configuration.departing))) {
      hint.departing = configuration.departing;
      --load_.copies[configuration.departing->slot];
    }
    if (configuration.successor && IsUsable(*configuration.successor)) {
      SetSuccessor(bucket, *configuration.successor);
    }
  }

  // What a server moves at a time.
  struct Moves {
    std::uint32_t buckets = 0;
    std::uint64_t bytes = 0;
  };

  // A bucket whose size is not known is as large as all that may move together.
  [[nodiscard]] std::uint64_t BytesOf(BucketId bucket) const {
    return settings_.bucket_bytes.empty() ? Balancer::kMovedBytesPerServer
                                          : settings_.bucket_bytes[bucket];
  }

  void CountMove(BucketId bucket, const ServerId& other) {
    for (const std::uint32_t slot : {configurations_.At(bucket).primary.slot, other.slot}) {
      ++moves_[slot].buckets;
      moves_[slot].bytes += BytesOf(bucket);
    }
  }

  [[nodiscard]] bool HasRoom(const Moves& moves, BucketId bucket) const {
    return moves.buckets < Balancer::kMovesPerServer ||
           moves.bytes + BytesOf(bucket) <= Balancer::kMovedBytesPerServer;
  }

  [[nodiscard]] bool MayMove(BucketId bucket, std::uint32_t slot) const {
    return HasRoom(moves_[configurations_.At(bucket).primary.slot], bucket) &&
           HasRoom(moves_[slot], bucket);
  }

  void SetLearner(BucketId bucket, const ServerId& learner) {
    hints_[bucket].learner = learner;
    ++load_.copies[learner.slot];
    CountMove(bucket, learner);
  }

  void SetSuccessor(BucketId bucket, const ServerId& successor) {
    const Configuration& configuration = configurations_.At(bucket);
    hints_[bucket].successor = successor;
    --load_.primaries[configuration.primary.slot];
    ++load_.primaries[successor.slot];
    CountMove(bucket, successor);
  }

  // How many of the bucket's other replicas would share the zone, and the machine, of this server.
  [[nodiscard]] std::pair<int, int> Clashes(const Configuration& configuration,
                                            std::uint32_t slot,
                                            std::optional<ServerId> without = std::nullopt) const {
    std::pair<int, int> clashes{0, 0};
    for (const ServerId& replica : configuration.replicas) {
      if (replica.slot != slot && replica != without) {
        const Server& here = servers_[slot];
        const Server& there = servers_[replica.slot];
        clashes.first += !here.zone.empty() && here.zone == there.zone ? 1 : 0;
        clashes.second += !here.node.empty() && here.node == there.node ? 1 : 0;
      }
    }
    return clashes;
  }

  static bool HasSlot(const Configuration& configuration, std::uint32_t slot) {
    return std::any_of(configuration.replicas.begin(),
                       configuration.replicas.end(),
                       [&](const ServerId& replica) { return replica.slot == slot; });
  }

  // The best server for one more copy; nullptr if none has room. Among equals the servers after the
  // primary's take turns.
  [[nodiscard]] const Server* BestLearner(BucketId bucket) const {
    const Configuration& configuration = configurations_.At(bucket);
    const auto count = static_cast<std::uint32_t>(servers_.size());
    const auto rank = [&](const Server& server) {
      const std::uint32_t slot = server.id.slot;
      return std::make_tuple(Clashes(configuration, slot),
                             load_.copies[slot],
                             (slot + count - configuration.primary.slot + bucket / count) % count);
    };
    const Server* best = nullptr;
    for (const Server& server : servers_) {
      if (IsUsable(server.id) && !HasSlot(configuration, server.id.slot) &&
          MayMove(bucket, server.id.slot) && (best == nullptr || rank(server) < rank(*best))) {
        best = &server;
      }
    }
    return best;
  }

  // A bucket with too few replicas needs a learner. Below minInSync who has taken it over cannot
  // even commit its log, and so not serve, before it has one.
  void FillUp(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    const bool urgent = configuration.replicas.size() < settings_.min_in_sync;
    const bool taken_over = configuration.created &&
                            configurations_.ServiceOf(bucket) == Configurations::Service::kAwaited;
    if (!(configurations_.IsServed(bucket) || (urgent && taken_over)) ||
        configuration.replicas.size() + missing_ != settings_.copies || hints_[bucket].learner ||
        (may_return_ && !urgent)) {
      return;
    }
    if (const Server* learner = BestLearner(bucket)) {
      SetLearner(bucket, learner->id);
    } else {
      waits_ = true;
    }
  }

  // The replica to do without: who is away; where copies share a zone or a machine; where there are
  // most.
  [[nodiscard]] ServerId Superfluous(const Configuration& configuration) const {
    const auto rank = [&](const ServerId& replica) {
      const Server& server = servers_[replica.slot];
      return std::make_tuple(!server.running || server.id != replica,
                             Clashes(configuration, replica.slot),
                             load_.copies[replica.slot],
                             replica != configuration.primary);
    };
    return *std::max_element(configuration.replicas.begin(),
                             configuration.replicas.end(),
                             [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }

  // A bucket with too many replicas needs one that departs. While the copy for it is still made,
  // its leaving counts already.
  void Thin(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    PlacementHint& hint = hints_[bucket];
    const std::size_t replicas = configuration.replicas.size() + (hint.learner ? 1 : 0);
    if (replicas <= settings_.copies || hint.departing) {
      return;
    }
    const ServerId departing = Superfluous(configuration);
    --load_.copies[departing.slot];
    if (configurations_.IsServed(bucket) && configuration.replicas.size() > settings_.copies) {
      hint.departing = departing;
    }
  }

  // A primary that is to leave or about to stop needs a successor.
  void Transfer(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    const PlacementHint& hint = hints_[bucket];
    if (!configurations_.IsServed(bucket) || hint.successor ||
        (hint.departing != configuration.primary &&
         !servers_[configuration.primary.slot].draining)) {
      return;
    }
    if (const auto successor = BestSuccessor(bucket)) {
      SetSuccessor(bucket, *successor);
    }
  }

  // A secondary that is about to stop leaves first, so that nobody waits for its acknowledgements
  // when it does: where enough of those remain that stay.
  void LetGo(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    PlacementHint& hint = hints_[bucket];
    for (const ServerId& replica : configuration.replicas) {
      if (configurations_.IsServed(bucket) && !hint.departing && !hint.successor &&
          CanDrain(configuration, replica)) {
        hint.departing = replica;
        --load_.copies[replica.slot];
      }
    }
  }

  [[nodiscard]] bool CanDrain(const Configuration& configuration, const ServerId& replica) const {
    const auto stay = std::count_if(configuration.replicas.begin(),
                                    configuration.replicas.end(),
                                    [&](const ServerId& other) { return IsUsable(other); });
    return servers_[replica.slot].draining && servers_[replica.slot].id == replica &&
           replica != configuration.primary &&
           stay >= std::max<std::int64_t>(settings_.min_in_sync, 1);
  }

  [[nodiscard]] std::optional<ServerId> BestSuccessor(BucketId bucket) const {
    const Configuration& configuration = configurations_.At(bucket);
    std::optional<ServerId> best;
    for (const ServerId& replica : configuration.replicas) {
      if (replica != configuration.primary && replica != hints_[bucket].departing &&
          IsUsable(replica) &&
          (!best || load_.primaries[replica.slot] < load_.primaries[best->slot])) {
        best = replica;
      }
    }
    return best;
  }

  // Nothing happens to the bucket, and it has all its copies.
  [[nodiscard]] bool IsSettled(BucketId bucket) const {
    const PlacementHint& hint = hints_[bucket];
    return configurations_.IsServed(bucket) && !hint.learner && !hint.departing &&
           !hint.successor && configurations_.At(bucket).replicas.size() == settings_.copies;
  }

  // Copies that share a zone or a machine, as there was no other for a while, move apart.
  // EvenCopies moves none back, so this comes to an end.
  void Scatter(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    if (!IsSettled(bucket)) {
      return;
    }
    const Server* to = BestLearner(bucket);
    const ServerId from = Superfluous(configuration);
    if (to != nullptr &&
        Clashes(configuration, to->id.slot, from) < Clashes(configuration, from.slot, from)) {
      SetLearner(bucket, to->id);
      --load_.copies[from.slot];
    }
  }

  void EvenCopies(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    if (!IsSettled(bucket)) {
      return;
    }
    const Server* to = BestLearner(bucket);
    const ServerId from = Superfluous(configuration);
    if (to != nullptr && load_.copies[from.slot] >= load_.copies[to->id.slot] + 2 &&
        Clashes(configuration, to->id.slot, from) <= Clashes(configuration, from.slot, from)) {
      SetLearner(bucket, to->id);
      --load_.copies[from.slot];
    }
  }

  void EvenPrimaries(BucketId bucket) {
    const Configuration& configuration = configurations_.At(bucket);
    if (!IsSettled(bucket)) {
      return;
    }
    const auto successor = BestSuccessor(bucket);
    if (successor && MayMove(bucket, successor->slot) &&
        load_.primaries[configuration.primary.slot] >= load_.primaries[successor->slot] + 2) {
      SetSuccessor(bucket, *successor);
    }
  }

  const JobSettings& settings_;
  const std::vector<Server>& servers_;
  const Configurations& configurations_;
  const bool may_return_;  // a server that is away
  Load load_;
  std::vector<Moves> moves_;          // by slot
  std::uint32_t missing_ = 0;         // copies of the buckets that FillUp looks at
  bool waits_ = false;                // one of them, until there is room for its copy
  std::vector<PlacementHint> hints_;  // by bucket
};

bool IsAway(const Server& server, Balancer::TimePoint now) {
  return !server.running && now < server.away_since + Balancer::kAwayTime;
}

}  // namespace

std::vector<ServerId> Balancer::Assign(const std::vector<Server>& servers) const {
  std::vector<ServerId> primaries;
  for (BucketId bucket = 0; bucket < settings_.buckets; ++bucket) {
    primaries.push_back(servers[bucket % servers.size()].id);
  }
  return primaries;
}

std::optional<ServerId> Balancer::Replacement(const std::vector<Server>& servers,
                                              const Load& load) {
  std::optional<ServerId> best;
  for (const Server& server : servers) {
    if (server.running && !server.draining &&
        (!best || load.primaries[server.id.slot] < load.primaries[best->slot])) {
      best = server.id;
    }
  }
  return best;
}

void Balancer::PlaceHints(const std::vector<Server>& servers,
                          Configurations& configurations,
                          TimePoint now) const {
  const bool may_return = std::any_of(servers.begin(), servers.end(), [&](const Server& server) {
    return server.draining || IsAway(server, now);
  });
  const std::vector<PlacementHint> hint =
      Planner(settings_, servers, configurations, may_return).Run();
  for (BucketId bucket = 0; bucket < hint.size(); ++bucket) {
    configurations.SetHint(bucket, hint[bucket]);
  }
}

std::optional<Balancer::TimePoint> Balancer::NextTimer(const std::vector<Server>& servers,
                                                       TimePoint now) {
  std::optional<TimePoint> next;
  for (const Server& server : servers) {
    if (IsAway(server, now) && (!next || server.away_since + kAwayTime < *next)) {
      next = server.away_since + kAwayTime;
    }
  }
  return next;
}

}  // namespace adamant::controller
