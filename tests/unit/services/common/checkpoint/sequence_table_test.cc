#include "services/common/checkpoint/sequence_table.h"

#include <gtest/gtest.h>

namespace adamant::checkpoint {
namespace {

using protocol::WorkerId;
using Verdict = SequenceTable::Verdict;

SequenceTable WithLast(Incarnation incarnation, Sequence sequence) {
  return SequenceTable({{.slot = 1, .incarnation = incarnation, .sequence = sequence}});
}

struct Case {
  const char* what;
  Incarnation incarnation;
  Sequence sequence;
  bool after_loss;
  Verdict verdict;
  std::uint64_t last;  // of that incarnation afterwards
};

TEST(SequenceTableTest, JudgesEveryCase) {
  // Slot 1 is at incarnation 5, sequence 10.
  const Case cases[] = {
      {"next", 5, 11, false, Verdict::kNext, 11},
      {"last again", 5, 10, false, Verdict::kDuplicate, 10},
      {"first again", 5, 1, false, Verdict::kDuplicate, 10},
      {"an old one sent after a loss", 5, 10, true, Verdict::kDuplicate, 10},
      {"a gap", 5, 12, false, Verdict::kUnexpected, 10},
      {"a gap after a loss", 5, 15, true, Verdict::kNext, 15},
      {"a new incarnation's first", 6, 1, false, Verdict::kNext, 1},
      {"a new incarnation's second", 6, 2, false, Verdict::kUnexpected, 0},
      {"a new incarnation after a loss", 6, 4, true, Verdict::kNext, 4},
      {"an old incarnation's next", 4, 11, false, Verdict::kStale, 0},
      {"an old incarnation's first", 4, 1, true, Verdict::kStale, 0},
  };
  for (const Case& c : cases) {
    SequenceTable table = WithLast(5, 10);
    const WorkerId writer{.slot = 1, .incarnation = c.incarnation};
    EXPECT_EQ(table.Admit(writer, c.sequence, c.after_loss), c.verdict) << c.what;
    EXPECT_EQ(table.LastOf(writer), c.last) << c.what;
  }
}

TEST(SequenceTableTest, AnUnknownSlotStartsAtOne) {
  SequenceTable table = WithLast(5, 10);
  EXPECT_EQ(table.Admit({.slot = 0, .incarnation = 1}, 2, false), Verdict::kUnexpected);
  EXPECT_EQ(table.Admit({.slot = 0, .incarnation = 1}, 1, false), Verdict::kNext);
  EXPECT_EQ(table.Admit({.slot = 7, .incarnation = 1}, 1, false), Verdict::kNext);
  ASSERT_EQ(table.entries().size(), 3u);
  EXPECT_EQ(table.entries()[0].slot, 0u);
  EXPECT_EQ(table.entries()[1].slot, 1u);
  EXPECT_EQ(table.entries()[2].slot, 7u);
}

TEST(SequenceTableTest, ARefusedUpdateOfANewIncarnationDoesNotFenceTheOldOne) {
  SequenceTable table = WithLast(5, 10);
  EXPECT_EQ(table.Admit({.slot = 1, .incarnation = 6}, 3, false), Verdict::kUnexpected);
  EXPECT_EQ(table.Admit({.slot = 1, .incarnation = 5}, 11, false), Verdict::kNext);
}

}  // namespace
}  // namespace adamant::checkpoint
