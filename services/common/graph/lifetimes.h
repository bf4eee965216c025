#pragma once

#include <cstdint>
#include <vector>

namespace adamant::graph {

/// Pieces of memory, each needed for a time, packed into one block so that those needed at the same
/// time do not overlap.
/// Threads: const members from any, while nobody calls the others.
class Lifetimes {
 public:
  /// A piece of `floats`, needed at no time yet. Returns its index.
  int Add(std::int64_t floats);

  /// The piece is needed during [begin, end] too, and all the time between.
  void Extend(int piece, std::int64_t begin, std::int64_t end);

  /// The offset of each piece, on cache lines: the largest first, each at the lowest place that is
  /// free while it is needed. Source: greedy by size, Pisarchyk and Lee 2020, "Efficient Memory
  /// Management for Deep Neural Net Inference".
  [[nodiscard]] std::vector<std::int64_t> Pack() const;

  /// Of the block, given what Pack returned.
  [[nodiscard]] std::int64_t Size(const std::vector<std::int64_t>& offsets) const;

 private:
  struct Piece {
    std::int64_t floats = 0;  // whole cache lines
    std::int64_t begin = 0;
    std::int64_t end = -1;  // before begin: never needed
  };
  [[nodiscard]] bool Overlap(const Piece& a, const Piece& b) const {
    return a.begin <= b.end && b.begin <= a.end;
  }

  std::vector<Piece> pieces_;
};

}  // namespace adamant::graph
