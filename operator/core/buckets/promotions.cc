#include "operator/core/buckets/promotions.h"

#include <algorithm>
#include <tuple>

namespace adamant::controller {

void Promotions::Add(const Proposal& proposal, TimePoint now) {
  Round& round = rounds_[proposal.bucket];
  if (round.configuration_version != proposal.configuration_version) {
    round = {.configuration_version = proposal.configuration_version,
             .until = now + kWindow,
             .proposals = {}};
  }
  std::erase_if(round.proposals,
                [&](const Proposal& earlier) { return earlier.proposer == proposal.proposer; });
  round.proposals.push_back(proposal);
}

bool Promotions::IsOver(BucketId bucket, const Round& round, TimePoint now) const {
  const Configuration& configuration = configurations_.At(bucket);
  const auto proposed = [&](const ServerId& replica) {
    return std::any_of(round.proposals.begin(), round.proposals.end(), [&](const Proposal& each) {
      return each.proposer == replica;
    });
  };
  return now >= round.until ||
         std::any_of(round.proposals.begin(),
                     round.proposals.end(),
                     [](const Proposal& each) { return each.released; }) ||
         std::all_of(configuration.replicas.begin(),
                     configuration.replicas.end(),
                     [&](const ServerId& replica) {
                       return replica == configuration.primary || dead_servers_.Has(replica) ||
                              proposed(replica);
                     });
}

// nullptr if all who proposed are dead by now.
const Proposal* Promotions::Best(const Round& round, const Load& load) const {
  const Proposal* best = nullptr;
  for (const Proposal& each : round.proposals) {
    const auto rank = [&](const Proposal& one) {
      return std::make_tuple(one.last_lsn,
                             one.released,
                             -std::int64_t{load.primaries[one.proposer.slot]},
                             -std::int64_t{one.proposer.slot});
    };
    if (!dead_servers_.Has(each.proposer) && (best == nullptr || rank(each) > rank(*best))) {
      best = &each;
    }
  }
  return best;
}

std::vector<Proposal> Promotions::Decide(TimePoint now, std::uint32_t servers) {
  std::vector<Proposal> winners;
  Load load(configurations_.all(), servers);
  for (auto entry = rounds_.begin(); entry != rounds_.end();) {
    const auto& [bucket, round] = *entry;
    const bool current = configurations_.At(bucket).version == round.configuration_version;
    if (current && !IsOver(bucket, round, now)) {
      ++entry;
      continue;
    }
    const Proposal* best = current ? Best(round, load) : nullptr;
    if (best != nullptr) {
      ++load.primaries[best->proposer.slot];
      winners.push_back(*best);
    }
    entry = rounds_.erase(entry);
  }
  return winners;
}

std::optional<Promotions::TimePoint> Promotions::NextTimer() const {
  std::optional<TimePoint> next;
  for (const auto& [bucket, round] : rounds_) {
    if (!next || round.until < *next) {
      next = round.until;
    }
  }
  return next;
}

}  // namespace adamant::controller
