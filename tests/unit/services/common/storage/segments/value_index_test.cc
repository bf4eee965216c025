#include "services/common/storage/segments/value_index.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace adamant::storage {
namespace {

using Outcome = Unflushed::Outcome;

constexpr Location kFirst{.segment = 1, .offset = 0, .bytes = 100};
constexpr Location kSecond{.segment = 2, .offset = 0, .bytes = 100};

Change Put(std::string key, std::string value) { return {std::move(key), std::move(value)}; }

// Flushes a large value at `place`.
void Store(ValueIndex& index, const std::string& key, const Location& place) {
  index.Add({Put(key, "")}, {place});
  index.BeginFlush();
  index.ApplyFlushed();
}

TEST(ValueIndexTest, FindsTheLatestAndCountsTheChangesOfRecords) {
  ValueIndex index;
  EXPECT_EQ(index.Find("a").outcome, std::nullopt);
  Store(index, "a", kFirst);
  EXPECT_EQ(index.Find("a").outcome, Outcome(kFirst));
  EXPECT_EQ(index.Find("a").commits, 1u);
  index.Add({Put("a", "small")}, {"small"});
  EXPECT_EQ(index.Find("a").outcome, Outcome("small"));
  EXPECT_EQ(index.commits(), 1u);
}

TEST(ValueIndexTest, AWriteForgetsOnlyWhatCameBefore) {
  ValueIndex index;
  index.Add({Put("a", "old")}, {"old"});
  const std::vector<Change> changes{Put("a", "written")};
  const ValueIndex::RecordWrite write = index.RecordsOf(changes);
  index.ApplyWritten(changes, write.call);
  EXPECT_EQ(index.Find("a").outcome, std::nullopt);

  const ValueIndex::RecordWrite late = index.RecordsOf(changes);
  index.Add({Put("a", "new")}, {"new"});
  index.ApplyWritten(changes, late.call);
  EXPECT_EQ(index.Find("a").outcome, Outcome("new"));
}

TEST(ValueIndexTest, AFailedFlushKeepsItsChangesUnderTheLaterOnes) {
  ValueIndex index;
  index.Add({Put("a", "1"), Put("b", "1")}, {"1", "1"});
  index.BeginFlush();
  index.Add({Put("b", "2")}, {"2"});
  index.UndoFlush();
  EXPECT_EQ(index.Find("a").outcome, Outcome("1"));
  EXPECT_EQ(index.Find("b").outcome, Outcome("2"));
  EXPECT_TRUE(index.RecordsToFlush().empty());
  index.BeginFlush();
  EXPECT_EQ(index.RecordsToFlush().size(), 2u);
}

TEST(ValueIndexTest, BytesAreInUseFromTheLazyWriteOn) {
  ValueIndex index;
  index.Load({{"a", kFirst}});
  index.Add({Put("a", "")}, {kSecond});
  EXPECT_EQ(index.UsedBytes(), (ValueIndex::SegmentBytes{{2, 100}}));
  index.BeginFlush();
  EXPECT_EQ(index.UsedBytes(), (ValueIndex::SegmentBytes{{2, 100}}));
  EXPECT_EQ(index.ApplyFlushed(), 100u);
  EXPECT_EQ(index.UsedBytes(), (ValueIndex::SegmentBytes{{2, 100}}));
  EXPECT_EQ(index.ApplyFlushed(), 0u);
}

TEST(ValueIndexTest, MovesValuesOutOfSparseSegmentsOnly) {
  ValueIndex index;
  index.Load({{"a", kFirst}, {"b", kSecond}});
  const ValueIndex::SegmentBytes all{{1, 1000}, {2, 200}, {3, 100}};
  const auto values = index.ValuesToMove(all, 3, 10);
  ASSERT_EQ(values.size(), 1u);
  EXPECT_EQ(values[0].first, "a");
  EXPECT_EQ(index.ValuesToMove(all, 1, 10)[0].first, "b");
  EXPECT_TRUE(index.ValuesToMove(all, 3, 1000).empty());
}

TEST(ValueIndexTest, AMovedValueDoesNotReplaceANewerOne) {
  constexpr Location kTo{.segment = 9, .offset = 0, .bytes = 100};
  ValueIndex index;
  index.Load({{"a", kFirst}, {"b", kFirst}});
  index.Add({Put("b", "new")}, {"new"});
  index.Move("a", kFirst, kTo);
  index.Move("b", kFirst, kTo);
  EXPECT_EQ(index.Find("a").outcome, Outcome(kTo));
  EXPECT_EQ(index.Find("b").outcome, Outcome("new"));
}

TEST(ValueIndexTest, AnOverlayHasWhatTheRecordsDoNotShow) {
  ValueIndex index;
  index.Load({{"a/1", kFirst}, {"a/2", kFirst}, {"b", kFirst}});
  index.Add({{"a/2", "", true, "a/9"}, Put("a/3", "small")}, {Unflushed::Erased{}, "small"});
  Overlay overlay = index.OverlayOf("a/");
  EXPECT_TRUE(overlay.Hides("a/5"));
  EXPECT_FALSE(overlay.Hides("a/1"));
  EXPECT_FALSE(overlay.Has("a/2"));
  const auto first = overlay.TakeBefore("a/3");
  ASSERT_TRUE(first);
  EXPECT_EQ(first.key(), "a/1");
  EXPECT_FALSE(overlay.TakeBefore("a/3"));
  EXPECT_EQ(overlay.TakeBefore(std::nullopt).key(), "a/3");
  EXPECT_FALSE(overlay.TakeBefore(std::nullopt));
}

}  // namespace
}  // namespace adamant::storage
