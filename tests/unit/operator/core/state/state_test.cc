#include "operator/core/state/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>

#include "services/common/base/checksum.h"

namespace adamant::controller {
namespace {

JobState Example() {
  JobState state;
  state.job_uid = 0xfedcba9876543210;
  state.term = 3;
  state.phase = Phase::kEvaluating;
  state.step = Step::kSnapshot;
  state.epoch = 7;
  state.row = {.epoch = 7, .snapshot = 9, .counted = 100, .training_loss = 0.25};
  state.row.update_staleness_counts = {1, 2, 3};
  state.last_snapshot = 9;
  Configuration bucket{
      .version = 7, .generation = 2, .primary = {2, 5}, .replicas = {{2, 5}, {0, 1}}};
  bucket.created = true;
  bucket.learner = ServerId{1, 3};
  bucket.successor = ServerId{0, 1};
  state.buckets = {bucket,
                   {.version = 4, .generation = 1, .primary = {0, 1}, .replicas = {{0, 1}}}};
  state.histories = {{.updates = 12, .rolled_back = 3}, {}};
  state.dead = {{2, 5}};
  state.checkpoint = {.snapshot = 8,
                      .epoch = 6,
                      .buckets = {{.slot = 2, .generation = 2, .updates = 10, .checksum = 77}, {}},
                      .cuts = {{.worker = 1, .incarnation = 2, .sequence = 30}},
                      .held = std::chrono::milliseconds(40)};
  state.part_owner = {1, 0};
  state.training_examples = 60000;
  state.invalid = true;
  state.at_chance = true;
  state.slots = {{.incarnation = 2, .uid = "abc", .generation = 5, .joined = 2, .losses = 1}, {}};
  state.active = std::chrono::milliseconds(123456);
  state.productive = state.active;
  state.message = "waits";
  return state;
}

TEST(StateCodecTest, StateAndResultsComeBackAsTheyWere) {
  const JobState state = Example();
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
  EXPECT_EQ(DecodeResult(Encode(state.row)).value(), state.row);
}

TEST(StateCodecTest, AResultIsNoLargerThanItsBound) {
  EpochResult row;
  row.update_staleness_counts.resize(kStalenessBins);
  row.batches_of_others.resize(kStalenessBins);
  EXPECT_EQ(Encode(row).size(), kLargestResult);
}

TEST(StateCodecTest, EveryChangedOrMissingByteIsNoticed) {
  const std::string bytes = Encode(Example());
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    std::string changed = bytes;
    changed[i] = static_cast<char>(changed[i] ^ 0x10);
    EXPECT_FALSE(DecodeState(changed).ok()) << "byte " << i;
    EXPECT_FALSE(DecodeState(bytes.substr(0, i)).ok()) << "cut at " << i;
  }
}

TEST(StateCodecTest, AnUnknownFormatVersionIsRefusedNamingBoth) {
  std::string bytes = Encode(Example());
  bytes[0] = 19;
  const absl::Status status = DecodeState(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("version 19"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("reads 3 to 18"));
}

/// What a program of this format version would have stored, from what has more fields at its end
/// (`newer` bytes) and in its row (2 fields from version 5 on).
std::string AsVersion(char version, const JobState& state, std::size_t newer) {
  constexpr std::size_t kBefore = 6 + 16 + 1;  // numbers before the row's first list, with its size
  std::string bytes = Encode(state);
  bytes.resize(bytes.size() - 8 - newer);
  const std::size_t counts = state.row.update_staleness_counts.size();
  if (version < 5) {
    bytes.erase(8 * (kBefore + counts), 16);
  }
  bytes[0] = version;
  const std::uint64_t checksum =
      Checksum(std::as_bytes(std::span<const char>(bytes.data(), bytes.size())));
  for (int shift = 0; shift < 64; shift += 8) {
    bytes.push_back(static_cast<char>(checksum >> shift));
  }
  return bytes;
}

constexpr std::size_t kNoProductive = sizeof(std::uint64_t);  // what version 17 had not

// What version 16 had not: seven fields of the epoch, a list, four of what was rolled back.
constexpr std::size_t kNoTotals = 12 * sizeof(std::uint64_t) + kNoProductive;

constexpr std::size_t kNoEnd = sizeof(std::uint64_t) + kNoTotals;  // what version 15 had not

constexpr std::size_t kNoEarlier = sizeof(std::uint64_t) + kNoEnd;  // what version 14 had not

constexpr std::size_t kNoSum = sizeof(std::uint64_t) + kNoEarlier;  // what version 13 had not

constexpr std::size_t kNoLost = sizeof(std::uint64_t) + kNoSum;  // what version 12 had not

constexpr std::size_t kNoSign = sizeof(std::uint64_t) + kNoLost;  // what version 11 had not

constexpr std::size_t kNoFiles = sizeof(std::uint64_t) + kNoSign;  // what version 10 had not

constexpr std::size_t kNoRates = 2 * sizeof(std::uint64_t) + kNoFiles;  // what version 9 had not

constexpr std::size_t kNoStarts = 4 * sizeof(std::uint64_t) + kNoRates;  // what version 8 had not

constexpr std::size_t kNoNewest = 11 * sizeof(std::uint64_t) + kNoStarts;  // what version 7 had not

constexpr std::size_t kNoBest = 2 * sizeof(std::uint64_t) + kNoNewest;  // what version 6 had not

constexpr std::size_t kNoRecovery =
    40 * sizeof(std::uint64_t) + kNoBest;  // a Recovery without text and lists

constexpr std::size_t kNoLoss =
    15 * sizeof(std::uint64_t) + kNoBest;  // of that what version 5 had not

TEST(StateCodecTest, AStateOfVersion17IsReadAsOneThatGotOnAllTheTime) {
  JobState state = Example();
  state.productive = std::chrono::milliseconds(7);
  const absl::StatusOr<JobState> read = DecodeState(AsVersion(17, state, kNoProductive));
  EXPECT_EQ(read.value(), Example());
  EXPECT_EQ(read->productive, state.active);
}

TEST(StateCodecTest, HowLongTrainingGotOnComesBack) {
  JobState state = Example();
  state.productive = std::chrono::milliseconds(7);
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion16IsReadAsOneThatHasCountedNothingOfTheOpenEpoch) {
  JobState state = Example();
  state.end = EndKind::kOutOfRestarts;
  state.unrecorded_losses = 3;
  EXPECT_EQ(DecodeState(AsVersion(16, state, kNoTotals)).value(), state);
}

TEST(StateCodecTest, WhatTheOpenEpochHasCountedComesBack) {
  JobState state = Example();
  state.totals = {.epoch = 7,
                  .trained = 100,
                  .loss_sum = 25.5,
                  .correct = 80,
                  .pushes_refused = 2,
                  .update_staleness_counts = {1, 2},
                  .batches_of_others = {3}};
  state.losses_told = {{}, {.incarnation = 4, .updates = 230}};
  state.rolled_back = {.open = true, .updates = 240, .lost = 230, .worker_ended = true};
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion15IsReadAsOneWhoseEndIsNotKnown) {
  JobState state = Example();
  EXPECT_EQ(DecodeState(AsVersion(15, state, kNoEnd)).value(), state);
  state.end = EndKind::kOutOfRestarts;
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion14IsReadAsOneWithoutAnEarlierLoss) {
  JobState state = Example();
  EXPECT_EQ(DecodeState(AsVersion(14, state, kNoEarlier)).value(), state);
  state.earlier_loss = 0.5;
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion13IsReadAsOneThatHasLostNothingOverTheJob) {
  const JobState state = Example();
  EXPECT_EQ(DecodeState(AsVersion(13, state, kNoSum)).value(), state);
}

TEST(StateCodecTest, WhatWasLostComesBack) {
  JobState state = Example();
  state.unrecorded_losses = 3;
  state.updates_lost = 5;
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion12IsReadAsOneThatHasLostNothing) {
  const JobState state = Example();
  EXPECT_EQ(DecodeState(AsVersion(12, state, kNoLost)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion11IsReadAsOneWithoutASign) {
  const JobState state = Example();
  EXPECT_EQ(DecodeState(AsVersion(11, state, kNoSign)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion10IsReadAsOneWhoseDataIsNotKnown) {
  const JobState state = Example();
  const absl::StatusOr<JobState> read = DecodeState(AsVersion(10, state, kNoFiles));
  EXPECT_EQ(read.value(), state);
  EXPECT_TRUE(read->data_files.empty());
}

TEST(StateCodecTest, TheFilesOfTheDataComeBack) {
  JobState state = Example();
  state.data_files = {{.field = "spec.data.train.idx.images", .fingerprint = 0xfedcba9876543210},
                      {.field = "spec.data.train.idx.labels", .fingerprint = 1}};
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion9IsReadAsOneWhoseRatesAreNotKnown) {
  JobState state = Example();
  state.recovery.rate_factor = 0.5;
  EXPECT_EQ(DecodeState(AsVersion(9, state, kNoRates)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion8IsReadAsOneThatWasNeverReleased) {
  const JobState state = Example();
  EXPECT_EQ(DecodeState(AsVersion(8, state, kNoStarts)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion7IsReadAsOneThatOnlyGoesBackToWhatIsHealthy) {
  JobState state = Example();
  state.best_epoch = 3;
  EXPECT_EQ(DecodeState(AsVersion(7, state, kNoNewest)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion6IsReadAsOneWithoutABestEpoch) {
  JobState state = Example();
  state.recovery.best_loss = 0.2;
  EXPECT_EQ(DecodeState(AsVersion(6, state, kNoBest)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion5IsReadAsOneThatKeptOneModelAndNoLoss) {
  JobState state = Example();
  state.recovery = {.first = state.checkpoint,
                    .healthy = {.checkpoint = state.checkpoint, .epoch = 7, .top1 = 0.5},
                    .best_top1 = 0.5,
                    .attempt = 3};
  EXPECT_EQ(DecodeState(AsVersion(5, state, kNoLoss)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion4IsReadAsOneThatNeverWentBack) {
  const JobState state = Example();
  EXPECT_EQ(DecodeState(AsVersion(4, state, kNoRecovery)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion3IsReadAsOneWithoutAVerdict) {
  JobState state = Example();
  const std::string bytes = AsVersion(3, state, kNoRecovery + sizeof(std::uint64_t));
  state.at_chance = false;
  EXPECT_EQ(DecodeState(bytes).value(), state);
}

TEST(StateCodecTest, WhereAJobGoesBackToComesBack) {
  JobState state = Example();
  state.recovery = {.first = state.checkpoint,
                    .healthy = {.checkpoint = state.checkpoint,
                                .epoch = 7,
                                .top1 = 0.5,
                                .evaluated = 8,
                                .examples = 64,
                                .counted = 3,
                                .best_loss = 0.3},
                    .older = {.checkpoint = state.checkpoint, .epoch = 6},
                    .newest = {.checkpoint = state.checkpoint, .epoch = 8, .counted = 4},
                    .found = true,
                    .best_top1 = 0.5,
                    .attempt = 3,
                    .times = 2,
                    .rate_factor = 0.25,
                    .rate = 0.08,
                    .layer_rates = {{.layer = "conv1", .rate = 0.04, .factor = 0.5}},
                    .going_back = true,
                    .ended_diverged = true,
                    .first_loss = 2.3,
                    .best_loss = 0.2,
                    .divergence = "NaN",
                    .sign = "grown",
                    .undone_updates = 5,
                    .undone_examples = 160,
                    .counted_examples = 96};
  state.row.attempt = 3;
  state.row.batches_of_others = {4, 5};
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, TheBestEpochComesBack) {
  JobState state = Example();
  state.best_epoch = 3;
  state.best_accuracy = 0.8;
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, SlotsAreNumberedRoleByRole) {
  const JobSettings settings{.name = "", .workers = 3, .data_servers = 2, .parameter_servers = 4};
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(SlotIndex(settings, SlotAt(settings, i)), i);
  }
  EXPECT_EQ(ToString(SlotAt(settings, 5)), "parameter-server-3");
  EXPECT_EQ(ToString(SlotAt(settings, 6)), "worker-0");
}

}  // namespace
}  // namespace adamant::controller
