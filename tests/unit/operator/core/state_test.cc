#include "operator/core/state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <span>

#include "operator/core/training_meter.h"
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
  state.row.staleness_counts = {1, 2, 3};
  state.last_snapshot = 9;
  Bucket bucket{.epoch = 7, .generation = 2, .primary = {2, 5}, .members = {{2, 5}, {0, 1}}};
  bucket.created = true;
  bucket.learner = Holder{1, 3};
  bucket.heir = Holder{0, 1};
  state.buckets = {bucket, {.epoch = 4, .generation = 1, .primary = {0, 1}, .members = {{0, 1}}}};
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
  row.staleness_counts.resize(kStalenessBins);
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
  bytes[0] = 16;
  const absl::Status status = DecodeState(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("version 16"));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("reads 3 to 15"));
}

/// What a program of this format version would have stored, from what has more fields at its end
/// (`newer` bytes) and in its row (2 fields from version 5 on).
std::string AsVersion(char version, const JobState& state, std::size_t newer) {
  constexpr std::size_t kBefore = 6 + 16 + 1;  // numbers before the row's first list, with its size
  std::string bytes = Encode(state);
  bytes.resize(bytes.size() - 8 - newer);
  const std::size_t counts = state.row.staleness_counts.size();
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

constexpr std::size_t kNoEarlier = sizeof(std::uint64_t);  // what version 14 had not

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
  state.lost_with_all = 3;
  state.updates_lost = 5;
  EXPECT_EQ(DecodeState(Encode(state)).value(), state);
}

TEST(StateCodecTest, AStateOfVersion12IsReadAsOneThatLostNothingWithAllProcesses) {
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

class TrainingMeterTest : public testing::Test {
 protected:
  TrainingMeter::TimePoint At(int second) { return start_ + std::chrono::seconds(second); }

  const TrainingMeter::TimePoint start_{std::chrono::hours(1)};
  TrainingMeter meter_;
};

TEST_F(TrainingMeterTest, AnEpochCountsOnlyWhatItsHeartbeatsAdd) {
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, {.trained_examples = 100, .loss_sum = 200, .correct = 50}, At(0));
  meter_.StartEpoch(2);
  meter_.OnWorker(0, 1, {.trained_examples = 300, .loss_sum = 300, .correct = 200}, At(1));
  EpochResult row;
  meter_.Fill(row);
  EXPECT_EQ(row.trained, 200u);
  EXPECT_DOUBLE_EQ(row.training_loss, 0.5);
  EXPECT_DOUBLE_EQ(row.training_accuracy, 0.75);
}

TEST_F(TrainingMeterTest, AWorkersHistogramIsNoLongerThanItsBound) {
  WorkerProgress progress{.trained_examples = 1};
  progress.staleness_counts.assign(10'000, 1);
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, progress, At(0));
  EpochResult row;
  meter_.Fill(row);
  EXPECT_EQ(row.staleness_counts, std::vector<std::uint64_t>(kStalenessBins, 1));
}

TEST_F(TrainingMeterTest, ANewIncarnationStartsFromZero) {
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, {.trained_examples = 100, .staleness_counts = {5}}, At(0));
  meter_.OnWorker(0, 2, {.trained_examples = 30, .staleness_counts = {1, 2}}, At(1));
  EpochResult row;
  meter_.Fill(row);
  EXPECT_EQ(row.trained, 130u);
  EXPECT_THAT(row.staleness_counts, testing::ElementsAre(6u, 2u));
}

TEST_F(TrainingMeterTest, WhatAProcessHadDoneBeforeItWasHeardOfWasNotWatched) {
  meter_.StartEpoch(1);
  meter_.OnWorker(0, 1, {.trained_examples = 900, .loss_sum = 1800}, At(0));
  EXPECT_EQ(meter_.watched().trained, 0u);
  meter_.OnWorker(0, 1, {.trained_examples = 1000, .loss_sum = 1850}, At(1));
  meter_.StartEpoch(2);
  meter_.OnWorker(0, 2, {.trained_examples = 10, .loss_sum = 20}, At(2));
  meter_.OnWorker(0, 2, {.trained_examples = 20, .loss_sum = 25}, At(3));
  EXPECT_EQ(meter_.watched().trained, 110u);
  EXPECT_DOUBLE_EQ(meter_.watched().MeanLossSince({}), 0.5);
}

TEST_F(TrainingMeterTest, CountsDoNotFallWhenADataServerIsLost) {
  meter_.StartEpoch(1);
  meter_.OnDataServer(0, {.epoch = 1, .counted_examples = 40, .total_examples = 50}, At(0));
  meter_.OnDataServer(1, {.epoch = 1, .counted_examples = 30, .total_examples = 50}, At(0));
  EXPECT_EQ(meter_.counted(), 70u);
  meter_.OnDataServerLost(0);
  meter_.OnDataServer(1, {.epoch = 1, .counted_examples = 35, .total_examples = 50}, At(1));
  EXPECT_EQ(meter_.counted(), 70u);
  meter_.OnDataServer(1, {.epoch = 1, .counted_examples = 80, .total_examples = 100}, At(2));
  EXPECT_EQ(meter_.counted(), 80u);
  EXPECT_EQ(meter_.total(), 100u);
}

TEST_F(TrainingMeterTest, SpeedIsOfTheRecentPast) {
  meter_.StartEpoch(1);
  for (int second = 0; second <= 40; ++second) {
    const std::uint64_t counted =
        second < 20 ? 10u * static_cast<unsigned>(second) : 200u + 50u * (second - 20u);
    meter_.OnDataServer(
        0, {.epoch = 1, .counted_examples = counted, .total_examples = 9999}, At(second));
  }
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(40)), 50);
}

// As of a controller that was stopped while its members went on.
TEST_F(TrainingMeterTest, WhatComesAtOnceAfterAPauseIsOfAllThatTime) {
  std::uint64_t counted = 0;
  const auto count = [&](TrainingMeter::TimePoint now) {
    counted += 100;
    meter_.OnDataServer(0, {.epoch = 1, .counted_examples = counted, .total_examples = 9999}, now);
  };
  meter_.StartEpoch(1);
  for (int second = 0; second <= 20; ++second) {
    count(At(second));
  }
  for (int i = 0; i < 60; ++i) {
    count(At(80) + std::chrono::microseconds(i));
  }
  EXPECT_NEAR(meter_.ExamplesPerSecond(At(80)), 100, 1);
  for (int second = 81; second <= 95; ++second) {
    count(At(second));
    EXPECT_NEAR(meter_.ExamplesPerSecond(At(second)), 100, 1);
  }
}

TEST_F(TrainingMeterTest, SpeedFallsToNothingWhileTrainingStands) {
  meter_.StartEpoch(1);
  const auto tell = [&](std::uint64_t counted, int second) {
    meter_.OnDataServer(
        0, {.epoch = 1, .counted_examples = counted, .total_examples = 9999}, At(second));
  };
  for (int second = 0; second <= 10; ++second) {
    tell(100 * static_cast<unsigned>(second), second);
  }
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(12)), 100);
  EXPECT_EQ(meter_.ExamplesPerSecond(At(14)), 0) << "nothing is heard";
  for (int second = 11; second <= 14; ++second) {
    tell(1000, second);
  }
  EXPECT_EQ(meter_.ExamplesPerSecond(At(14)), 0) << "nothing is counted";
  tell(1400, 15);
  EXPECT_GT(meter_.ExamplesPerSecond(At(15)), 0);
}

TEST_F(TrainingMeterTest, BatchesThatTakeLongAreNoStandstill) {
  meter_.StartEpoch(1);
  for (int second = 0; second <= 20; ++second) {
    const auto batches = static_cast<std::uint64_t>(second / 5);
    meter_.OnDataServer(
        0, {.epoch = 1, .counted_examples = 100 * batches, .total_examples = 9999}, At(second));
  }
  EXPECT_GT(meter_.ExamplesPerSecond(At(24)), 0);
}

TEST_F(TrainingMeterTest, SpeedAndLossSpanEpochs) {
  for (std::uint64_t epoch = 1; epoch <= 3; ++epoch) {
    meter_.StartEpoch(epoch);
    meter_.OnDataServer(0,
                        {.epoch = epoch, .counted_examples = 60, .total_examples = 60},
                        At(static_cast<int>(2 * epoch)));
    meter_.OnWorker(0,
                    1,
                    {.trained_examples = 60 * epoch, .loss_sum = 30.0 * static_cast<double>(epoch)},
                    At(static_cast<int>(2 * epoch)));
  }
  meter_.StartEpoch(4);
  EXPECT_EQ(meter_.counted(), 0u);
  EXPECT_DOUBLE_EQ(meter_.ExamplesPerSecond(At(6)), 30);
  EXPECT_DOUBLE_EQ(meter_.RecentLoss(), 0.5);
}

}  // namespace
}  // namespace adamant::controller
