#include "operator/local/run_story.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/system/files.h"

namespace adamant::local {
namespace {

using controller::Note;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Keeps what it is told: of notes their texts.
class Listener final : public Observer {
 public:
  void OnNote(const Note& note) override {
    texts.push_back(note.text);
    kinds.push_back(note.kind);
    epochs.push_back(note.epoch);
  }
  void OnEpoch(const controller::EpochResult& result) override { ended.push_back(result.epoch); }
  void OnProgress(const controller::JobReport& /*report*/) override {}

  std::vector<std::string> texts;
  std::vector<Note::Kind> kinds;
  std::vector<DataEpoch> epochs;
  std::vector<DataEpoch> ended;
};

class RunStoryTest : public testing::Test {
 protected:
  RunStoryTest() {
    job_.mutable_metadata()->set_name("mnist");
    EXPECT_TRUE(CreateRunFolder(paths_, "job").ok());
  }
  ~RunStoryTest() override { std::filesystem::remove_all(paths_.root); }

  RunStory Open() {
    auto story = RunStory::Open(job_, paths_, state_, {}, listener_);
    EXPECT_TRUE(story.ok()) << story.status();
    return *std::move(story);
  }

  [[nodiscard]] std::string Events() const { return ReadFile(paths_.events(), 10'000).value(); }

  const RunPaths paths_{std::filesystem::temp_directory_path() /
                        ("adamant_run_story_" + std::to_string(getpid()))};
  v1::TrainingJob job_;
  controller::JobState state_;
  Listener listener_;
};

TEST_F(RunStoryTest, WhatIsToldIsRecordedToo) {
  RunStory story = Open();
  story.Tell({.kind = Note::Kind::kWarning, .text = "the rate is high"});
  story.TellEpoch({.epoch = 1, .counted = 10, .seconds = 1});
  EXPECT_THAT(listener_.texts, ElementsAre("the rate is high"));
  EXPECT_THAT(listener_.ended, ElementsAre(1u));
  EXPECT_THAT(Events(), HasSubstr("the rate is high"));
  ASSERT_EQ(story.results().size(), 1u);
  EXPECT_EQ(story.results()[0].epoch, 1u);
}

TEST_F(RunStoryTest, AlarmsAreOfTheEpochThatIsOpen) {
  RunStory story = Open();
  state_.epoch = 3;
  story.TellAlarms({"a copy of the state was damaged"});
  EXPECT_THAT(listener_.kinds, ElementsAre(Note::Kind::kAlarm));
  EXPECT_THAT(listener_.epochs, ElementsAre(3u));
  EXPECT_THAT(Events(), HasSubstr("a copy of the state was damaged"));
}

TEST_F(RunStoryTest, OfWhatCannotBeRecordedTheUserHearsOnce) {
  RunStory story = Open();
  story.Record(absl::OkStatus());
  EXPECT_THAT(listener_.texts, IsEmpty());
  story.Record(absl::ResourceExhaustedError("the disk is full"));
  story.Record(absl::ResourceExhaustedError("the disk is full still"));
  EXPECT_THAT(listener_.texts, ElementsAre("the disk is full"));
  EXPECT_THAT(Events(), testing::Not(HasSubstr("the disk is full")));
}

TEST_F(RunStoryTest, AManifestThatWasRemovedIsThereAgainAtTheEnd) {
  RunStory story = Open();
  std::filesystem::remove(paths_.job());
  story.Finish();
  EXPECT_TRUE(std::filesystem::exists(paths_.job()));
  EXPECT_THAT(listener_.texts, ElementsAre(HasSubstr("was removed while the job ran")));
}

}  // namespace
}  // namespace adamant::local
