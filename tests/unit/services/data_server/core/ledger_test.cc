#include "services/data_server/core/ledger.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "services/common/base/checksum.h"
#include "services/common/base/rng.h"
#include "services/data_server/core/batch_queue.h"
#include "services/data_server/core/order.h"

namespace adamant::data_server {
namespace {

Ledger SomeLedger(std::size_t batches) {
  Ledger ledger{.epoch = 7,
                .closed = false,
                .counted = std::vector<bool>(batches),
                .counted_examples = 12345678901,
                .retrained_examples = 64,
                .earlier_examples = 360000,
                .unattended = {{.epoch = 5, .counted = 90, .left = 10, .retrained = 3},
                               {.epoch = 6, .counted = 100, .left = 0, .retrained = 0}},
                .writer_slot = 2,
                .writer_incarnation = 9};
  for (std::size_t i = 0; i < batches; i += 3) {
    ledger.counted[i] = true;
  }
  return ledger;
}

TEST(LedgerTest, IsParsedBackAsItWasSerialized) {
  for (const std::size_t batches : {0, 1, 7, 8, 9, 1875}) {
    const Ledger ledger = SomeLedger(batches);
    EXPECT_EQ(ParseLedger(SerializeLedger(ledger)).value(), ledger) << batches;
  }
}

TEST(LedgerTest, EveryChangedByteAndEveryLengthIsRefused) {
  const std::string good = SerializeLedger(SomeLedger(21));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 0x10);
    EXPECT_FALSE(ParseLedger(bad).ok()) << "byte " << i;
    EXPECT_FALSE(ParseLedger(good.substr(0, i)).ok()) << "length " << i;
  }
  EXPECT_FALSE(ParseLedger(good + "x").ok());
}

TEST(LedgerTest, UnknownFormatVersionIsRefusedNamingBoth) {
  std::string other = SerializeLedger(SomeLedger(21));
  other[0] = 9;
  const absl::Status status = ParseLedger(other).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(status.message().find("format version 9"), std::string::npos) << status;
  EXPECT_NE(status.message().find("reads version 2"), std::string::npos) << status;
}

TEST(LedgerTest, RandomBytesNeverCrash) {
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    Rng rng(seed);
    std::string bytes(rng.Below(120), '\0');
    for (char& byte : bytes) {
      byte = static_cast<char>(rng());
    }
    if (bytes.size() >= 4) {
      bytes.replace(0, 4, std::string("\2\0\0\0", 4));
    }
    EXPECT_FALSE(ParseLedger(bytes).ok()) << "seed " << seed;
  }
}

TEST(EpochOrderTest, IsAPermutationThatDependsOnSeedAndEpoch) {
  const std::vector<std::uint32_t> order = EpochOrder(3, 1, 1000);
  std::vector<bool> seen(1000);
  for (const std::uint32_t example : order) {
    ASSERT_LT(example, 1000u);
    EXPECT_FALSE(seen[example]);
    seen[example] = true;
  }
  EXPECT_EQ(order, EpochOrder(3, 1, 1000));
  EXPECT_NE(order, EpochOrder(3, 2, 1000));
  EXPECT_NE(order, EpochOrder(4, 1, 1000));
  EXPECT_TRUE(EpochOrder(3, 1, 0).empty());
}

// How often each position of the order is in a batch of any part.
std::vector<int> Visits(const PartLayout& layout, std::uint32_t batch_size) {
  std::vector<int> visits(layout.examples());
  for (std::uint32_t part = 0; part < layout.parts(); ++part) {
    for (std::uint32_t batch = 0; batch < layout.Batches(part); ++batch) {
      const std::uint32_t count = layout.BatchExamples(part, batch);
      EXPECT_GE(count, 1u);
      EXPECT_LE(count, batch_size);
      for (std::uint32_t i = 0; i < count; ++i) {
        ++visits.at(layout.Position(part, batch, i));
      }
    }
  }
  return visits;
}

TEST(PartLayoutTest, BatchesOfAllPartsCoverEveryPositionOnce) {
  for (const std::uint32_t examples : {1u, 5u, 64u, 97u}) {
    for (const std::uint32_t parts : {1u, 2u, 3u, 7u}) {
      for (const std::uint32_t batch_size : {1u, 4u, 32u}) {
        EXPECT_EQ(Visits(PartLayout(examples, parts, batch_size), batch_size),
                  std::vector<int>(examples, 1))
            << examples << " examples, " << parts << " parts, batches of " << batch_size;
      }
    }
  }
}

TEST(BatchQueueTest, DispatchesReturnedBatchesFirstAndSkipsWhatIsDone) {
  BatchQueue queue(std::vector<bool>{false, true, false, false});
  EXPECT_EQ(queue.Next()->batch, 0u);
  EXPECT_EQ(queue.Next()->batch, 2u);
  queue.Return({.batch = 2, .lost = true});
  queue.Return({.batch = 0, .lost = false});
  std::vector<std::uint32_t> peeked;
  queue.Peek(2, peeked);
  EXPECT_EQ(peeked, (std::vector<std::uint32_t>{2, 0}));
  EXPECT_TRUE(queue.MarkDone(2));
  EXPECT_FALSE(queue.MarkDone(2));
  EXPECT_TRUE(queue.HasReturned());
  EXPECT_EQ(queue.Next()->batch, 0u);
  EXPECT_FALSE(queue.HasReturned());
  EXPECT_EQ(queue.Next()->batch, 3u);
  EXPECT_FALSE(queue.HasNext());
  EXPECT_FALSE(queue.Next().has_value());
}

TEST(BatchQueueTest, CountsWhatIsTakenAndNeitherBackNorDone) {
  BatchQueue queue(std::vector<bool>(3));
  EXPECT_EQ(queue.out(), 0u);
  queue.Next();
  queue.Next();
  EXPECT_EQ(queue.out(), 2u);
  queue.Return({.batch = 0, .lost = true});
  EXPECT_EQ(queue.out(), 1u);
  EXPECT_TRUE(queue.MarkDone(0));  // a result that came late
  EXPECT_EQ(queue.out(), 1u);
  EXPECT_TRUE(queue.MarkDone(1));
  EXPECT_FALSE(queue.MarkDone(1));
  EXPECT_EQ(queue.out(), 0u);
}

}  // namespace
}  // namespace adamant::data_server
