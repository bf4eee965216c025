#include "services/common/checkpoint/shard_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace adamant::checkpoint {
namespace {

using ::testing::HasSubstr;

const ShardIdentity kIdentity{.job_uid = 77, .shard = 3, .values = 4, .state = 2};

std::string Stored() {
  const ShardContent content{.generation = 2,
                             .lsn = 7,
                             .version = 9,
                             .sequences = SequenceTable({{2, 5, 6}, {0, 1, 8}}),
                             .values = {1, 2, 3, 4},
                             .state = {-1, -2}};
  std::string record = EncodeShard(kIdentity, content);
  SealShard(record);
  return record;
}

TEST(ShardRecordTest, WhatIsEncodedIsDecoded) {
  const std::string record = Stored();
  const auto decoded = DecodeShard(kIdentity, record);
  ASSERT_TRUE(decoded.ok()) << decoded.status();
  EXPECT_EQ(decoded->generation, 2u);
  EXPECT_EQ(decoded->lsn, 7u);
  EXPECT_EQ(decoded->version, 9u);
  EXPECT_EQ(std::vector<float>(decoded->values.begin(), decoded->values.end()),
            (std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(std::vector<float>(decoded->state.begin(), decoded->state.end()),
            (std::vector<float>{-1, -2}));
  ASSERT_EQ(decoded->sequences.entries().size(), 2u);
  EXPECT_EQ(decoded->sequences.entries()[0], (SequenceTable::Entry{0, 1, 8}));
  EXPECT_EQ(decoded->sequences.entries()[1], (SequenceTable::Entry{2, 5, 6}));
}

TEST(ShardRecordTest, EveryFlippedByteIsFound) {
  const std::string record = Stored();
  for (std::size_t i = 0; i < record.size(); ++i) {
    std::string corrupt = record;
    corrupt[i] = static_cast<char>(corrupt[i] ^ 0x10);
    EXPECT_FALSE(DecodeShard(kIdentity, corrupt).ok()) << "byte " << i;
  }
}

TEST(ShardRecordTest, EveryCutIsFound) {
  const std::string record = Stored();
  for (std::size_t size = 0; size < record.size(); ++size) {
    EXPECT_FALSE(DecodeShard(kIdentity, record.substr(0, size)).ok()) << size << " bytes";
  }
}

TEST(ShardRecordTest, ASlotThatCannotBeIsDamage) {
  constexpr std::size_t kHeader = 64;
  constexpr std::size_t kSequence = 24;  // slot, incarnation, sequence
  const std::string stored = Stored();
  const std::string unsealed = stored.substr(0, stored.size() - sizeof(std::uint64_t));
  std::string beyond = unsealed;  // of 32 bits, else it would be taken for another slot
  beyond[kHeader + kSequence + 4] = 1;
  std::string twice = unsealed;
  twice[kHeader + kSequence] = 0;
  for (std::string& record : {std::ref(beyond), std::ref(twice)}) {
    SealShard(record);
    EXPECT_TRUE(absl::IsDataLoss(DecodeShard(kIdentity, record).status()));
  }
}

TEST(ShardRecordTest, AnUnknownVersionIsRefusedNamingBoth) {
  std::string record = Stored();
  record[0] = 3;
  const absl::Status status = DecodeShard(kIdentity, record).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("format version 3"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("reads version 2"));
}

TEST(ShardRecordTest, AnotherJobsShardIsRefusedNamingBoth) {
  ShardIdentity other = kIdentity;
  other.job_uid = 78;
  const std::string record = Stored();
  const absl::Status status = DecodeShard(other, record).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), HasSubstr("job 77, not to 78"));
}

TEST(ShardRecordTest, OtherSizesAreRefused) {
  const std::string record = Stored();
  for (const ShardIdentity& other : {ShardIdentity{77, 3, 5, 2},
                                     ShardIdentity{77, 3, 4, 3},
                                     ShardIdentity{77, 4, 4, 2},
                                     ShardIdentity{77, 3, 2, 4}}) {
    EXPECT_EQ(DecodeShard(other, record).status().code(), absl::StatusCode::kDataLoss);
  }
}

}  // namespace
}  // namespace adamant::checkpoint
