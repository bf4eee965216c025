#include "services/parameter_server/core/storage/entry_record.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/checksum.h"

namespace adamant::parameter_server {
namespace {

const ShardLayout kLayout({{.name = "fc.weight", .layer = "fc", .shape = {2, 2}}}, 1);
const std::vector<float> kValues = {1, 2, 3, 4};

std::string Stored(const Correction& correction) {
  Entry entry{.lsn = 5, .origin = 2};
  entry.updates.push_back({.shard = 0,
                           .writer = {.slot = 1, .incarnation = 3},
                           .sequence = 9,
                           .kind = UpdateKind::kGradient,
                           .job_examples = 320,
                           .correction = correction,
                           .values = kValues});
  return StoreEntry(0, 1, entry).value;
}

/// The entry as version 1 stored it: without what follows the update's header.
std::string AsVersion1(std::string stored) {
  constexpr std::size_t kHeader = 56;
  constexpr std::size_t kUpdateHeader = 48;
  stored.erase(kHeader + kUpdateHeader, 2 * sizeof(float));
  stored[0] = 1;
  stored.resize(stored.size() - sizeof(std::uint64_t));
  const std::uint64_t checksum = Checksum(std::as_bytes(std::span(stored)));
  stored.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  return stored;
}

const LoggedUpdate& UpdateOf(const StoredEntry& stored) { return stored.entry->updates.at(0); }

TEST(EntryRecordTest, TheCorrectionIsPartOfTheEntry) {
  const Correction correction = {.rate = 0.25f, .memory = 2};
  const auto entry = DecodeEntry(Stored(correction), kLayout);
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(UpdateOf(*entry).correction, correction);
  EXPECT_EQ(UpdateOf(*entry).job_examples, 320u);
  EXPECT_EQ(std::vector(UpdateOf(*entry).values.begin(), UpdateOf(*entry).values.end()), kValues);
}

TEST(EntryRecordTest, VersionOneIsReadAsWithoutCorrection) {
  const auto entry = DecodeEntry(AsVersion1(Stored({})), kLayout);
  ASSERT_TRUE(entry.ok()) << entry.status();
  EXPECT_EQ(UpdateOf(*entry).correction, Correction{});
  EXPECT_EQ(UpdateOf(*entry).sequence, 9u);
  EXPECT_EQ(std::vector(UpdateOf(*entry).values.begin(), UpdateOf(*entry).values.end()), kValues);
}

TEST(EntryRecordTest, AnUnknownVersionIsRefusedNamingBoth) {
  std::string stored = Stored({});
  stored[0] = 3;
  const auto entry = DecodeEntry(stored, kLayout);
  EXPECT_EQ(entry.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_NE(entry.status().message().find("format version 3"), std::string::npos);
  EXPECT_NE(entry.status().message().find("versions 1 to 2"), std::string::npos);
}

TEST(EntryRecordTest, OperandsOfAnotherShapeOrTensorAreDamage) {
  const ShardLayout layout({{.name = "a.weight", .layer = "a", .shape = {2, 2}},
                            {.name = "b.weight", .layer = "b", .shape = {2, 2}}},
                           1);
  const auto decoded = [&](Operands operands) {
    operands.activations = std::span(kValues).first(operands.inputs * operands.rows);
    operands.errors = std::span(kValues).first(operands.outputs * operands.rows);
    Entry entry{.lsn = 5, .origin = 2};
    entry.updates.push_back({.shard = 0, .sequence = 1, .kind = UpdateKind::kOuterProduct});
    entry.updates[0].operands =
        std::make_shared<const SharedOperands>(SharedOperands{.operands = operands});
    return DecodeEntry(StoreEntry(0, 1, entry).value, layout).status();
  };
  EXPECT_TRUE(decoded({.tensor = 0, .rows = 1, .inputs = 2, .outputs = 2}).ok());
  EXPECT_TRUE(absl::IsDataLoss(decoded({.tensor = 0, .rows = 0, .inputs = 2, .outputs = 2})));
  EXPECT_TRUE(absl::IsDataLoss(decoded({.tensor = 0, .rows = 1, .inputs = 1, .outputs = 2})));
  EXPECT_TRUE(absl::IsDataLoss(decoded({.tensor = 1, .rows = 1, .inputs = 2, .outputs = 2})));
  EXPECT_TRUE(absl::IsDataLoss(decoded({.tensor = 9, .rows = 1, .inputs = 2, .outputs = 2})));
}

TEST(EntryRecordTest, ACorrectionOutOfRangeIsDamage) {
  EXPECT_EQ(DecodeEntry(Stored({.rate = -1}), kLayout).status().code(),
            absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace adamant::parameter_server
