#include "operator/core/training/data_identity.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace adamant::controller {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr SlotId kFirst{Role::kDataServer, 0};
constexpr SlotId kSecond{Role::kDataServer, 1};

DataFile File(std::uint64_t fingerprint) {
  DataFile file;
  file.field = "spec.data.train.idx.images";
  file.fingerprint = fingerprint;
  return file;
}

class DataIdentityTest : public testing::Test {
 protected:
  JobSettings settings_;
  JobState state_;
  Outbox outbox_;
  DataIdentity data_{settings_, state_, outbox_};
};

TEST_F(DataIdentityTest, AllReadTheFilesOfTheFirst) {
  EXPECT_TRUE(data_.OnFiles(kFirst, {File(1)}).ok());
  EXPECT_TRUE(data_.OnFiles(kSecond, {File(1)}).ok());
  EXPECT_THAT(data_.Binding(), SizeIs(1));
  EXPECT_THAT(std::string(data_.OnFiles(kSecond, {File(2)}).message()),
              HasSubstr("spec.data.train.idx.images: data-server-1 reads another file"));
}

TEST_F(DataIdentityTest, OthersThatAreAcceptedAreWhatTheNextReads) {
  EXPECT_TRUE(data_.OnFiles(kFirst, {File(1)}).ok());
  data_.AcceptOthers();
  EXPECT_THAT(data_.Binding(), IsEmpty());
  EXPECT_TRUE(data_.OnFiles(kFirst, {File(2)}).ok());
  EXPECT_THAT(data_.Binding(), SizeIs(1));
  EXPECT_FALSE(data_.OnFiles(kSecond, {File(1)}).ok());
}

TEST_F(DataIdentityTest, AllCountAsManyExamples) {
  EXPECT_TRUE(*data_.OnExamples(kFirst, 100));
  EXPECT_EQ(state_.training_examples, 100u);
  EXPECT_FALSE(*data_.OnExamples(kSecond, 100));
  EXPECT_THAT(std::string(data_.OnExamples(kSecond, 99).status().message()),
              HasSubstr("data-server-1 has 99 examples, but the job began with 100"));
}

}  // namespace
}  // namespace adamant::controller
