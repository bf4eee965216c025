#include "operator/core/training/export_coordinator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/operator/core/job/job_parts.h"

namespace adamant::controller {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr std::uint64_t kModel = 7;

// The primaries serve the model, which was the job's last.
class ExportCoordinatorTest : public JobParts {
 protected:
  ExportCoordinatorTest() {
    BeginTraining();
    state_.evaluated_snapshot = kModel;
    state_.checkpoint.snapshot = kModel;
    for (const Configuration& configuration : state_.buckets) {
      state_.checkpoint.buckets.push_back(
          {.slot = configuration.primary.slot, .generation = configuration.generation});
    }
  }

  std::vector<Export> Begin() {
    exports_.Begin(now_);
    return Pick<Export>(Take());
  }
  std::vector<Export> PassRetry() {
    now_ += ExportCoordinator::kRetry;
    exports_.OnTimer(now_);
    return Pick<Export>(Take());
  }
  std::optional<absl::Status> EndWith(const absl::Status& status, std::uint64_t snapshot = kModel) {
    return exports_.OnExported({.snapshot = snapshot, .status = status}, now_);
  }

  SnapshotCoordinator snapshots_{
      settings_, state_, outbox_, processes_, placement_.configurations()};
  ExportCoordinator exports_{state_, outbox_, snapshots_};
};

TEST_F(ExportCoordinatorTest, TheEvaluatedModelIsWrittenAndItsEndIsReturned) {
  EXPECT_FALSE(EndWith(absl::OkStatus()).has_value()) << "nothing is exported yet";
  const std::vector<Export> begun = Begin();
  ASSERT_THAT(begun, SizeIs(1));
  EXPECT_EQ(begun[0].snapshot, kModel);
  EXPECT_EQ(state_.step, Step::kExporting);
  EXPECT_FALSE(EndWith(absl::OkStatus(), kModel - 1).has_value());
  EXPECT_EQ(EndWith(absl::OkStatus()), absl::OkStatus());
  EXPECT_EQ(EndWith(absl::DataLossError("damaged")), absl::DataLossError("damaged"));
  EXPECT_FALSE(exports_.NextTimer().has_value());
}

TEST_F(ExportCoordinatorTest, AServerThatIsAwayIsTriedAgain) {
  Begin();
  EXPECT_FALSE(EndWith(absl::UnavailableError("connection refused")).has_value());
  EXPECT_EQ(exports_.NextTimer(), now_ + ExportCoordinator::kRetry);
  exports_.OnTimer(now_);
  EXPECT_THAT(Take(), IsEmpty()) << "too early";
  EXPECT_THAT(PassRetry(), SizeIs(1));
  EXPECT_THAT(PassRetry(), IsEmpty()) << "once";
}

TEST_F(ExportCoordinatorTest, AnErrorCountsOnlyOfAnExportThatNothingDisturbed) {
  Begin();
  exports_.OnDisturbed();
  EXPECT_FALSE(EndWith(absl::NotFoundError("no such snapshot")).has_value());
  EXPECT_THAT(PassRetry(), SizeIs(1));
  EXPECT_TRUE(EndWith(absl::NotFoundError("no such snapshot")).has_value());
}

TEST_F(ExportCoordinatorTest, PrimariesThatAreStillToStoreTheModelAreWaitedFor) {
  const SlotId primary{Role::kParameterServer, state_.buckets[0].primary.slot};
  state_.checkpoint.buckets[0].slot = 1 - primary.slot;
  exports_.Begin(now_);
  const std::vector<Action> begun = Take();
  EXPECT_THAT(Pick<Export>(begun), IsEmpty());
  EXPECT_THAT(Sent<TakeSnapshot>(begun), SizeIs(1));
  EXPECT_THAT(PassRetry(), IsEmpty());
  SnapshotTaken taken{.snapshot = kModel, .ok = true};
  taken.buckets.push_back({.bucket = 0, .generation = state_.buckets[0].generation});
  ASSERT_TRUE(snapshots_.OnTaken(primary.slot, taken, now_).ok());
  EXPECT_THAT(PassRetry(), SizeIs(1));
}

TEST_F(ExportCoordinatorTest, NothingIsTriedAgainWhereTheJobGoesBack) {
  Begin();
  EXPECT_FALSE(EndWith(absl::UnavailableError("connection refused")).has_value());
  exports_.Abandon();
  EXPECT_FALSE(exports_.NextTimer().has_value());
  EXPECT_THAT(PassRetry(), IsEmpty());
}

}  // namespace
}  // namespace adamant::controller
