#include "services/common/storage/segments/segment_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/storage/segments/segment_store.h"
#include "tests/unit/services/common/storage/test_folder.h"

namespace adamant::storage {
namespace {

using testing::ElementsAre;

std::string Large(const std::string& text) {
  return text + std::string(SegmentStore::kLargeBytes, 'v');
}

class SegmentReaderTest : public testing::Test {
 protected:
  SegmentReaderTest() {
    auto store = SegmentStore::Open(folder_.path() / "store");
    EXPECT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    EXPECT_TRUE(store_
                    ->WriteLazily({{.key = "a/2", .value = Large("two")},
                                   {.key = "a/1", .value = "one"},
                                   {.key = "a/3", .value = "three"},
                                   {.key = "b/1", .value = Large("other")}})
                    .ok());
    EXPECT_TRUE(store_->Flush().ok());
  }

  [[nodiscard]] std::unique_ptr<SegmentReader> Read() const {
    auto reader = SegmentReader::Open(folder_.path() / "store");
    EXPECT_TRUE(reader.ok()) << reader.status();
    return *std::move(reader);
  }

  TestFolder folder_;
  std::unique_ptr<SegmentStore> store_;
};

TEST_F(SegmentReaderTest, SmallAndLargeValuesAreReadWhileTheStoreIsOpen) {
  const auto reader = Read();
  EXPECT_EQ(reader->Get("a/1").value(), "one");
  EXPECT_EQ(reader->Get("a/2").value(), Large("two"));
  EXPECT_TRUE(absl::IsNotFound(reader->Get("a/4").status()));
}

TEST_F(SegmentReaderTest, AScanShowsWhatBeginsWithAPrefixInTheOrderOfTheKeys) {
  std::vector<std::string> seen;
  ASSERT_TRUE(Read()
                  ->Scan("a/",
                         [&](std::string_view key, std::string_view value) {
                           seen.push_back(std::string(key) + "=" + std::string(value.substr(0, 3)));
                           return true;
                         })
                  .ok());
  EXPECT_THAT(seen, ElementsAre("a/1=one", "a/2=two", "a/3=thr"));
}

TEST_F(SegmentReaderTest, AScanEndsWhenTheVisitorHasEnough) {
  int seen = 0;
  ASSERT_TRUE(
      Read()->Scan("a/", [&](std::string_view, std::string_view) { return ++seen < 2; }).ok());
  EXPECT_EQ(seen, 2);
}

TEST_F(SegmentReaderTest, WhatIsWrittenLaterIsNotSeenAndNothingIsWritten) {
  const auto reader = Read();
  ASSERT_TRUE(store_->Write({{.key = "a/1", .value = "changed"}}).ok());
  EXPECT_EQ(reader->Get("a/1").value(), "one");
  EXPECT_TRUE(absl::IsFailedPrecondition(reader->Write({{.key = "c", .value = "c"}})));
  EXPECT_TRUE(absl::IsFailedPrecondition(reader->Flush()));
  EXPECT_EQ(Read()->Get("a/1").value(), "changed");
}

TEST_F(SegmentReaderTest, ASegmentThatIsGoneIsDamage) {
  const auto reader = Read();
  std::filesystem::remove_all(folder_.path() / "store" / "segments");
  EXPECT_TRUE(absl::IsDataLoss(reader->Get("a/2").status()));
  EXPECT_TRUE(absl::IsDataLoss(
      reader->Scan("a/", [](std::string_view, std::string_view) { return true; })));
}

}  // namespace
}  // namespace adamant::storage
