#include "operator/core/buckets/deaths.h"

#include <algorithm>

namespace adamant::controller {

// Sorted, each once.
std::vector<Holder> Deaths::Named() const {
  std::vector<Holder> named;
  for (const Bucket& record : state_.buckets) {
    named.insert(named.end(), record.members.begin(), record.members.end());
    if (record.learner) {
      named.push_back(*record.learner);
    }
  }
  std::sort(named.begin(), named.end());
  named.erase(std::unique(named.begin(), named.end()), named.end());
  return named;
}

bool Deaths::Prove(Holder holder) {
  const std::vector<Holder> named = Named();
  if (Has(holder) || !std::binary_search(named.begin(), named.end(), holder)) {
    return false;
  }
  state_.dead.insert(std::lower_bound(state_.dead.begin(), state_.dead.end(), holder), holder);
  return true;
}

bool Deaths::ProveUpTo(std::uint32_t slot, std::uint64_t incarnation) {
  bool news = false;
  for (const Holder& holder : Named()) {
    if (holder.slot == slot && holder.incarnation <= incarnation) {
      news = Prove(holder) || news;
    }
  }
  return news;
}

bool Deaths::ProveAll() {
  std::vector<Holder> named = Named();
  const bool news = named != state_.dead;
  state_.dead = std::move(named);
  return news;
}

bool Deaths::Has(Holder holder) const {
  return std::binary_search(state_.dead.begin(), state_.dead.end(), holder);
}

void Deaths::Prune() {
  const std::vector<Holder> named = Named();
  std::erase_if(state_.dead, [&](const Holder& holder) {
    return !std::binary_search(named.begin(), named.end(), holder);
  });
}

}  // namespace adamant::controller
