#include "services/common/graph/lifetimes.h"

#include <gtest/gtest.h>

#include "services/common/base/rng.h"

namespace adamant::graph {
namespace {

TEST(LifetimesTest, PiecesNeededAtOtherTimesShareMemory) {
  Lifetimes lifetimes;
  const int a = lifetimes.Add(100);
  const int b = lifetimes.Add(100);
  const int c = lifetimes.Add(100);
  lifetimes.Extend(a, 0, 1);
  lifetimes.Extend(b, 1, 2);
  lifetimes.Extend(c, 2, 3);
  const auto offsets = lifetimes.Pack();
  EXPECT_EQ(offsets[a], offsets[c]);
  EXPECT_NE(offsets[a], offsets[b]);
  EXPECT_EQ(lifetimes.Size(offsets), 2 * 112);  // whole cache lines
}

TEST(LifetimesTest, APieceIsNeededBetweenItsUsesToo) {
  Lifetimes lifetimes;
  const int a = lifetimes.Add(16);
  const int b = lifetimes.Add(16);
  lifetimes.Extend(a, 5, 5);
  lifetimes.Extend(a, 1, 1);
  lifetimes.Extend(b, 3, 3);
  const auto offsets = lifetimes.Pack();
  EXPECT_NE(offsets[a], offsets[b]);
}

TEST(LifetimesTest, NoTwoOfManyRandomPiecesOverlap) {
  struct Piece {
    std::int64_t floats, begin, end;
  };
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    Rng rng(seed);
    Lifetimes lifetimes;
    std::vector<Piece> pieces;
    std::int64_t all = 0;
    for (int i = 0; i < 30; ++i) {
      Piece piece = {static_cast<std::int64_t>(1 + rng.Below(200)),
                     static_cast<std::int64_t>(rng.Below(40)),
                     0};
      piece.end = piece.begin + static_cast<std::int64_t>(rng.Below(10));
      lifetimes.Extend(lifetimes.Add(piece.floats), piece.begin, piece.end);
      pieces.push_back(piece);
      all += piece.floats;
    }
    const auto offsets = lifetimes.Pack();
    for (std::size_t a = 0; a < pieces.size(); ++a) {
      EXPECT_EQ(offsets[a] % 16, 0);
      for (std::size_t b = 0; b < a; ++b) {
        const bool same_time = pieces[a].begin <= pieces[b].end && pieces[b].begin <= pieces[a].end;
        const bool apart = offsets[a] + pieces[a].floats <= offsets[b] ||
                           offsets[b] + pieces[b].floats <= offsets[a];
        EXPECT_TRUE(apart || !same_time) << "seed " << seed << ": " << a << " and " << b;
      }
    }
    EXPECT_LT(lifetimes.Size(offsets), all) << "seed " << seed;
  }
}

}  // namespace
}  // namespace adamant::graph
