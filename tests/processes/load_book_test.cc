#include "tests/processes/load_book.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace adamant::processes {
namespace {

using Answer = LoadBook::Answer;

constexpr std::size_t kElements = 9;

// One shard of nine elements that start at 0.25, and a server that can be told to err.
class LoadBookTest : public testing::Test {
 protected:
  static ShardLayout Layout() {
    Parameter parameter;
    parameter.name = "fc1.bias";
    parameter.layer = "fc1";
    parameter.shape = Shape{static_cast<std::int64_t>(kElements)};
    return ShardLayout({parameter}, 1);
  }

  void Apply(const LoadBook::Update& update) { values_[update.element] += 1; }

  // Begins an update, and has it applied and acknowledged.
  void Push(LoadBook& book) {
    const LoadBook::Update update = book.Begin(0, false);
    Apply(update);
    book.OnAnswer(0, update.sequence, Answer::kAcknowledged, 0);
  }

  std::vector<std::string> Faults(const LoadBook& book) {
    std::vector<std::string> faults = book.Check(0, initial_, values_, 10);
    faults.insert(faults.end(), book.violations().begin(), book.violations().end());
    return faults;
  }

  const ShardLayout layout_ = Layout();
  const std::vector<float> initial_ = std::vector<float>(kElements, 0.25F);
  std::vector<float> values_ = initial_;
};

TEST_F(LoadBookTest, AcknowledgedUpdatesCountOnce) {
  LoadBook book(layout_, {});
  for (int i = 0; i < 20; ++i) {  // twice through the elements, and a bit
    Push(book);
  }
  EXPECT_EQ(Faults(book), std::vector<std::string>{});
  EXPECT_EQ(book.counts().acknowledged, 20u);
  values_[3] -= 1;
  EXPECT_EQ(Faults(book).size(), 1u);
  values_[3] += 2;
  EXPECT_EQ(Faults(book).size(), 1u);
  values_[3] -= 0.5F;
  EXPECT_EQ(Faults(book).size(), 1u);
  values_[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(Faults(book).size(), 1u);
}

TEST_F(LoadBookTest, UnansweredUpdateCountsAtMostOnce) {
  LoadBook book(layout_, {});
  const LoadBook::Update update = book.Begin(0, false);
  EXPECT_EQ(book.counts().unanswered, 1u);
  EXPECT_EQ(Faults(book).size(), 0u);
  Apply(update);
  EXPECT_EQ(Faults(book).size(), 0u);
  Apply(update);
  EXPECT_EQ(Faults(book).size(), 1u);
}

TEST_F(LoadBookTest, RefusedUpdateNeverCountsAndLeavesItsSequence) {
  LoadBook book(layout_, {});
  const LoadBook::Update poisoned = book.Begin(0, true);
  book.OnAnswer(0, poisoned.sequence, Answer::kRefused, 0);
  const Sequence sequence = poisoned.sequence;
  EXPECT_EQ(book.Begin(0, false).sequence, sequence);
  EXPECT_EQ(book.counts().refused, 1u);
  EXPECT_EQ(Faults(book).size(), 0u);
  values_[poisoned.element] += 1;
  EXPECT_EQ(Faults(book).size(), 1u);
}

TEST_F(LoadBookTest, NanThatIsAcceptedAndUpdateThatIsRefusedAreViolations) {
  LoadBook book(layout_, {});
  book.OnAnswer(0, book.Begin(0, true).sequence, Answer::kAcknowledged, 0);
  EXPECT_EQ(book.violations().size(), 1u);
  book.OnAnswer(0, book.Begin(0, false).sequence, Answer::kRefused, 0);
  EXPECT_EQ(book.violations().size(), 2u);
}

TEST_F(LoadBookTest, WritersDoNotShareElements) {
  LoadBook even(layout_, {.writer = 0, .writers = 2});
  LoadBook odd(layout_, {.writer = 1, .writers = 2});
  for (int i = 0; i < 12; ++i) {
    Push(even);
    Push(odd);
  }
  EXPECT_EQ(Faults(even).size(), 0u);
  EXPECT_EQ(Faults(odd).size(), 0u);
  values_[1] += 1;
  EXPECT_EQ(Faults(even).size(), 0u);
  EXPECT_EQ(Faults(odd).size(), 1u);
}

TEST_F(LoadBookTest, RolledBackUpdatesAreSentAgainInOrder) {
  LoadBook book(layout_, {});
  for (int i = 0; i < 4; ++i) {
    Push(book);
  }
  const std::vector<float> expected = values_;
  values_ = initial_;  // the server has lost 2, 3 and 4
  values_[0] += 1;
  book.OnAnswer(0, book.Begin(0, false).sequence, Answer::kUnexpected, 2);
  for (Sequence sequence = 2; sequence <= 4; ++sequence) {
    const LoadBook::Update again =
        book.InFlight(0) != nullptr ? *book.InFlight(0) : book.Begin(0, false);
    EXPECT_EQ(again.sequence, sequence);
    EXPECT_TRUE(book.Behind(0));
    Apply(again);
    book.OnAnswer(0, sequence, Answer::kAcknowledged, 0);
  }
  EXPECT_EQ(values_, expected);
  EXPECT_FALSE(book.Behind(0));
  EXPECT_EQ(book.Begin(0, false).sequence, 5u);
  EXPECT_EQ(Faults(book).size(), 0u);
  EXPECT_EQ(book.counts().rolled_back, 3u);
  EXPECT_EQ(book.counts().lost, 0u);
  EXPECT_EQ(book.counts().acknowledged, 4u);
}

TEST_F(LoadBookTest, WriterThatRetainsNothingSkipsWhatWasLost) {
  LoadBook book(layout_, {.retain = false});
  for (int i = 0; i < 4; ++i) {
    Push(book);
  }
  values_ = initial_;
  values_[0] += 1;
  book.OnAnswer(0, book.Begin(0, false).sequence, Answer::kUnexpected, 2);
  ASSERT_NE(book.InFlight(0), nullptr);
  EXPECT_EQ(book.InFlight(0)->sequence, 5u);
  EXPECT_TRUE(book.InFlight(0)->after_loss);
  Apply(*book.InFlight(0));
  book.OnAnswer(0, 5, Answer::kAcknowledged, 0);
  EXPECT_EQ(Faults(book).size(), 0u);
  EXPECT_EQ(book.counts().lost, 3u);
  EXPECT_FALSE(book.Begin(0, false).after_loss);
}

TEST_F(LoadBookTest, ServerThatWantsMoreThanWasSentIsWrong) {
  LoadBook book(layout_, {});
  book.OnAnswer(0, book.Begin(0, false).sequence, Answer::kUnexpected, 7);
  EXPECT_EQ(book.violations().size(), 1u);
}

TEST_F(LoadBookTest, ServerThatWantsWhatItSaidIsOnDiskIsWrong) {
  LoadBook book(layout_, {});
  for (int i = 0; i < 4; ++i) {
    Push(book);
  }
  book.OnPersisted(0, 2);
  book.OnAnswer(0, book.Begin(0, false).sequence, Answer::kUnexpected, 3);
  EXPECT_EQ(book.violations().size(), 0u);
  book.OnAnswer(0, book.InFlight(0)->sequence, Answer::kAcknowledged, 0);
  book.OnAnswer(0, book.Begin(0, false).sequence, Answer::kUnexpected, 2);
  EXPECT_EQ(book.violations().size(), 1u);
}

TEST_F(LoadBookTest, LateAnswersChangeNothing) {
  LoadBook book(layout_, {});
  Push(book);
  Push(book);
  book.OnAnswer(0, 1, Answer::kUnexpected, 1);
  book.OnAnswer(0, 2, Answer::kAcknowledged, 0);
  EXPECT_EQ(book.InFlight(0), nullptr);
  EXPECT_EQ(book.Begin(0, false).sequence, 3u);
  EXPECT_EQ(book.counts().acknowledged, 2u);
}

}  // namespace
}  // namespace adamant::processes
