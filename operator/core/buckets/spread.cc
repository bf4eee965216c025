#include "operator/core/buckets/spread.h"

#include <algorithm>
#include <tuple>

namespace adamant::controller {
namespace {

using Server = Spread::Server;

// Makes one set of advice. Loads are counted as if all advice had been followed.
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
        load_(configurations.records(), static_cast<std::uint32_t>(servers.size())),
        moves_(servers.size()),
        advice_(configurations.size()) {}

  std::vector<Advice> Run() {
    ForEach(&Planner::Keep);
    // All second copies before any third: a bucket with one copy may be below minInSync, and blocks
    // the job.
    for (missing_ = settings_.copies; missing_ > 0 && !waits_; --missing_) {
      ForEach(&Planner::FillUp);
    }
    ForEach(&Planner::Thin);
    ForEach(&Planner::HandOver);
    ForEach(&Planner::LetGo);
    if (std::all_of(servers_.begin(), servers_.end(), [](const Server& server) {
          return server.running && !server.draining;
        })) {
      ForEach(&Planner::Scatter);
      ForEach(&Planner::EvenCopies);
      ForEach(&Planner::EvenPrimaries);
    }
    return std::move(advice_);
  }

 private:
  void ForEach(void (Planner::*step)(std::uint32_t)) {
    for (std::uint32_t bucket = 0; bucket < configurations_.size(); ++bucket) {
      (this->*step)(bucket);
    }
  }

  [[nodiscard]] bool IsUsable(const Holder& holder) const {
    const Server& server = servers_[holder.slot];
    return server.running && !server.draining && server.holder == holder;
  }

  // Earlier advice that still makes sense; it is not taken back halfway.
  void Keep(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    Advice& advice = advice_[bucket];
    if (record.learner && IsUsable(*record.learner)) {
      advice.learner = record.learner;
      CountMove(bucket, *record.learner);
    } else if (record.learner) {
      --load_.copies[record.learner->slot];
    }
    if (record.leaver &&
        (record.members.size() > settings_.copies || MayGo(record, *record.leaver))) {
      advice.leaver = record.leaver;
      --load_.copies[record.leaver->slot];
    }
    if (record.heir && IsUsable(*record.heir)) {
      SetHeir(bucket, *record.heir);
    }
  }

  // What a server moves at a time.
  struct Moves {
    std::uint32_t buckets = 0;
    std::uint64_t bytes = 0;
  };

  // A bucket whose size is not known is as large as all that may move together.
  [[nodiscard]] std::uint64_t BytesOf(std::uint32_t bucket) const {
    return settings_.bucket_bytes.empty() ? Spread::kMovedBytesPerServer
                                          : settings_.bucket_bytes[bucket];
  }

  void CountMove(std::uint32_t bucket, const Holder& other) {
    for (const std::uint32_t slot : {configurations_.At(bucket).primary.slot, other.slot}) {
      ++moves_[slot].buckets;
      moves_[slot].bytes += BytesOf(bucket);
    }
  }

  [[nodiscard]] bool HasRoom(const Moves& moves, std::uint32_t bucket) const {
    return moves.buckets < Spread::kMovesPerServer ||
           moves.bytes + BytesOf(bucket) <= Spread::kMovedBytesPerServer;
  }

  [[nodiscard]] bool MayMove(std::uint32_t bucket, std::uint32_t slot) const {
    return HasRoom(moves_[configurations_.At(bucket).primary.slot], bucket) &&
           HasRoom(moves_[slot], bucket);
  }

  void SetLearner(std::uint32_t bucket, const Holder& learner) {
    advice_[bucket].learner = learner;
    ++load_.copies[learner.slot];
    CountMove(bucket, learner);
  }

  void SetHeir(std::uint32_t bucket, const Holder& heir) {
    const Bucket& record = configurations_.At(bucket);
    advice_[bucket].heir = heir;
    --load_.primaries[record.primary.slot];
    ++load_.primaries[heir.slot];
    CountMove(bucket, heir);
  }

  // How many of the bucket's other members would share the zone, and the machine, of this server.
  [[nodiscard]] std::pair<int, int> Clashes(const Bucket& record,
                                            std::uint32_t slot,
                                            std::optional<Holder> without = std::nullopt) const {
    std::pair<int, int> clashes{0, 0};
    for (const Holder& member : record.members) {
      if (member.slot != slot && member != without) {
        const Server& here = servers_[slot];
        const Server& there = servers_[member.slot];
        clashes.first += !here.zone.empty() && here.zone == there.zone ? 1 : 0;
        clashes.second += !here.node.empty() && here.node == there.node ? 1 : 0;
      }
    }
    return clashes;
  }

  static bool HasSlot(const Bucket& record, std::uint32_t slot) {
    return std::any_of(record.members.begin(), record.members.end(), [&](const Holder& member) {
      return member.slot == slot;
    });
  }

  // The best server for one more copy; nullptr if none has room. Among equals the servers after the
  // primary's take turns.
  [[nodiscard]] const Server* BestLearner(std::uint32_t bucket) const {
    const Bucket& record = configurations_.At(bucket);
    const auto count = static_cast<std::uint32_t>(servers_.size());
    const auto rank = [&](const Server& server) {
      const std::uint32_t slot = server.holder.slot;
      return std::make_tuple(Clashes(record, slot),
                             load_.copies[slot],
                             (slot + count - record.primary.slot + bucket / count) % count);
    };
    const Server* best = nullptr;
    for (const Server& server : servers_) {
      if (IsUsable(server.holder) && !HasSlot(record, server.holder.slot) &&
          MayMove(bucket, server.holder.slot) && (best == nullptr || rank(server) < rank(*best))) {
        best = &server;
      }
    }
    return best;
  }

  // A bucket with too few members needs a learner. Below minInSync who has taken it over cannot
  // even commit its log, and so not serve, before it has one.
  void FillUp(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    const bool urgent = record.members.size() < settings_.min_in_sync;
    const bool taken_over =
        record.created && configurations_.ServiceOf(bucket) == Configurations::Service::kAwaited;
    if (!(configurations_.IsServed(bucket) || (urgent && taken_over)) ||
        record.members.size() + missing_ != settings_.copies || advice_[bucket].learner ||
        (may_return_ && !urgent)) {
      return;
    }
    if (const Server* learner = BestLearner(bucket)) {
      SetLearner(bucket, learner->holder);
    } else {
      waits_ = true;
    }
  }

  // The member to do without: who is away; where copies share a zone or a machine; where there are
  // most.
  [[nodiscard]] Holder Superfluous(const Bucket& record) const {
    const auto rank = [&](const Holder& member) {
      const Server& server = servers_[member.slot];
      return std::make_tuple(!server.running || server.holder != member,
                             Clashes(record, member.slot),
                             load_.copies[member.slot],
                             member != record.primary);
    };
    return *std::max_element(record.members.begin(),
                             record.members.end(),
                             [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
  }

  // A bucket with too many members needs a leaver. While the copy for it is still made, its leaving
  // counts already.
  void Thin(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    Advice& advice = advice_[bucket];
    const std::size_t members = record.members.size() + (advice.learner ? 1 : 0);
    if (members <= settings_.copies || advice.leaver) {
      return;
    }
    const Holder leaver = Superfluous(record);
    --load_.copies[leaver.slot];
    if (configurations_.IsServed(bucket) && record.members.size() > settings_.copies) {
      advice.leaver = leaver;
    }
  }

  // A primary that is to leave or about to stop needs an heir.
  void HandOver(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    const Advice& advice = advice_[bucket];
    if (!configurations_.IsServed(bucket) || advice.heir ||
        (advice.leaver != record.primary && !servers_[record.primary.slot].draining)) {
      return;
    }
    if (const auto heir = BestHeir(bucket)) {
      SetHeir(bucket, *heir);
    }
  }

  // A secondary that is about to stop leaves first, so that nobody waits for its acknowledgements
  // when it does: where enough of those remain that stay.
  void LetGo(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    Advice& advice = advice_[bucket];
    for (const Holder& member : record.members) {
      if (configurations_.IsServed(bucket) && !advice.leaver && !advice.heir &&
          MayGo(record, member)) {
        advice.leaver = member;
        --load_.copies[member.slot];
      }
    }
  }

  [[nodiscard]] bool MayGo(const Bucket& record, const Holder& member) const {
    const auto stay = std::count_if(record.members.begin(),
                                    record.members.end(),
                                    [&](const Holder& other) { return IsUsable(other); });
    return servers_[member.slot].draining && servers_[member.slot].holder == member &&
           member != record.primary && stay >= std::max<std::int64_t>(settings_.min_in_sync, 1);
  }

  [[nodiscard]] std::optional<Holder> BestHeir(std::uint32_t bucket) const {
    const Bucket& record = configurations_.At(bucket);
    std::optional<Holder> best;
    for (const Holder& member : record.members) {
      if (member != record.primary && member != advice_[bucket].leaver && IsUsable(member) &&
          (!best || load_.primaries[member.slot] < load_.primaries[best->slot])) {
        best = member;
      }
    }
    return best;
  }

  // Nothing happens to the bucket, and it has all its copies.
  [[nodiscard]] bool IsSettled(std::uint32_t bucket) const {
    const Advice& advice = advice_[bucket];
    return configurations_.IsServed(bucket) && !advice.learner && !advice.leaver && !advice.heir &&
           configurations_.At(bucket).members.size() == settings_.copies;
  }

  // Copies that share a zone or a machine, as there was no other for a while, move apart.
  // EvenCopies moves none back, so this comes to an end.
  void Scatter(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    if (!IsSettled(bucket)) {
      return;
    }
    const Server* to = BestLearner(bucket);
    const Holder from = Superfluous(record);
    if (to != nullptr &&
        Clashes(record, to->holder.slot, from) < Clashes(record, from.slot, from)) {
      SetLearner(bucket, to->holder);
      --load_.copies[from.slot];
    }
  }

  void EvenCopies(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    if (!IsSettled(bucket)) {
      return;
    }
    const Server* to = BestLearner(bucket);
    const Holder from = Superfluous(record);
    if (to != nullptr && load_.copies[from.slot] >= load_.copies[to->holder.slot] + 2 &&
        Clashes(record, to->holder.slot, from) <= Clashes(record, from.slot, from)) {
      SetLearner(bucket, to->holder);
      --load_.copies[from.slot];
    }
  }

  void EvenPrimaries(std::uint32_t bucket) {
    const Bucket& record = configurations_.At(bucket);
    if (!IsSettled(bucket)) {
      return;
    }
    const auto heir = BestHeir(bucket);
    if (heir && MayMove(bucket, heir->slot) &&
        load_.primaries[record.primary.slot] >= load_.primaries[heir->slot] + 2) {
      SetHeir(bucket, *heir);
    }
  }

  const JobSettings& settings_;
  const std::vector<Server>& servers_;
  const Configurations& configurations_;
  const bool may_return_;  // a server that is away
  Load load_;
  std::vector<Moves> moves_;    // by slot
  std::uint32_t missing_ = 0;   // copies of the buckets that FillUp looks at
  bool waits_ = false;          // one of them, until there is room for its copy
  std::vector<Advice> advice_;  // by bucket
};

bool IsAway(const Server& server, Spread::TimePoint now) {
  return !server.running && now < server.away_since + Spread::kAwayTime;
}

}  // namespace

std::vector<Holder> Spread::Assign(const std::vector<Server>& servers) const {
  std::vector<Holder> primaries;
  for (std::uint32_t bucket = 0; bucket < settings_.buckets; ++bucket) {
    primaries.push_back(servers[bucket % servers.size()].holder);
  }
  return primaries;
}

std::optional<Holder> Spread::Replacement(const std::vector<Server>& servers, const Load& load) {
  std::optional<Holder> best;
  for (const Server& server : servers) {
    if (server.running && !server.draining &&
        (!best || load.primaries[server.holder.slot] < load.primaries[best->slot])) {
      best = server.holder;
    }
  }
  return best;
}

void Spread::Advise(const std::vector<Server>& servers,
                    Configurations& configurations,
                    TimePoint now) const {
  const bool may_return = std::any_of(servers.begin(), servers.end(), [&](const Server& server) {
    return server.draining || IsAway(server, now);
  });
  const std::vector<Advice> advice = Planner(settings_, servers, configurations, may_return).Run();
  for (std::uint32_t bucket = 0; bucket < advice.size(); ++bucket) {
    configurations.SetAdvice(bucket, advice[bucket]);
  }
}

std::optional<Spread::TimePoint> Spread::NextTimer(const std::vector<Server>& servers,
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
