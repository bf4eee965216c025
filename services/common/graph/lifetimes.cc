#include "services/common/graph/lifetimes.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace adamant::graph {

int Lifetimes::Add(std::int64_t floats) {
  constexpr std::int64_t kCacheLine = 64 / sizeof(float);
  pieces_.push_back({.floats = (floats + kCacheLine - 1) / kCacheLine * kCacheLine});
  return static_cast<int>(pieces_.size()) - 1;
}

void Lifetimes::Extend(int piece, std::int64_t begin, std::int64_t end) {
  Piece& p = pieces_[static_cast<std::size_t>(piece)];
  p.begin = p.end < p.begin ? begin : std::min(p.begin, begin);
  p.end = std::max(p.end, end);
}

std::vector<std::int64_t> Lifetimes::Pack() const {
  std::vector<std::size_t> order(pieces_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return pieces_[a].floats > pieces_[b].floats;
  });
  std::vector<std::int64_t> offsets(pieces_.size(), 0);
  std::vector<std::size_t> placed;  // by offset
  for (const std::size_t i : order) {
    std::int64_t offset = 0;
    for (const std::size_t other : placed) {
      if (!Overlap(pieces_[i], pieces_[other])) {
        continue;
      }
      if (offset + pieces_[i].floats <= offsets[other]) {
        break;
      }
      offset = std::max(offset, offsets[other] + pieces_[other].floats);
    }
    offsets[i] = offset;
    const auto after = std::upper_bound(
        placed.begin(), placed.end(), offset, [&](std::int64_t value, std::size_t other) {
          return value < offsets[other];
        });
    placed.insert(after, i);
  }
  return offsets;
}

std::int64_t Lifetimes::Size(const std::vector<std::int64_t>& offsets) const {
  std::int64_t size = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    size = std::max(size, offsets[i] + pieces_[i].floats);
  }
  return size;
}

}  // namespace adamant::graph
