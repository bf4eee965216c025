#include <gtest/gtest.h>

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "operator/cli/kubectl/app.h"

namespace adamant::kubectl {
namespace {

class KubectlCompletionTest : public testing::Test {
 protected:
  KubectlCompletionTest() { AddCommands(app_, exit_code_); }

  std::string Complete(const std::vector<std::string>& words) {
    return Completions(app_, words, [this](const Target& target) {
      asked_ = target;
      return std::vector<std::string>{"mnist", "digits"};
    });
  }

  int exit_code_ = 0;
  CLI::App app_;
  Target asked_;
};

TEST_F(KubectlCompletionTest, TheFirstWordIsACommand) {
  EXPECT_EQ(Complete({"ev"}), "events\tTell what happened to a job and its pods\n:4\n");
}

TEST_F(KubectlCompletionTest, TheSecondIsAJobOfTheClusterThatIsNamed) {
  EXPECT_EQ(Complete({"status", "mn"}), "mnist\n:4\n");
  EXPECT_EQ(Complete({"status", "-n", "training", "--context=east", ""}), "mnist\ndigits\n:4\n");
  EXPECT_EQ(asked_.ns, "training");
  EXPECT_EQ(asked_.config.context, "east");
}

TEST_F(KubectlCompletionTest, ValuesOfOptionsAreNotGuessed) {
  EXPECT_EQ(Complete({"status", "-n", ""}), ":4\n");
}

TEST_F(KubectlCompletionTest, ValuesThatAreWordsAreOffered) {
  EXPECT_EQ(Complete({"status", "mnist", "--output", "j"}), "json\n:4\n");
  EXPECT_EQ(Complete({"export", "--format", ""}), "safetensors\nonnx\n:4\n");
}

TEST_F(KubectlCompletionTest, OptionsAreThoseOfTheCommand) {
  EXPECT_EQ(Complete({"export", "--form"}), "--format\tOnly the model, in this format\n:4\n");
}

TEST_F(KubectlCompletionTest, LogsKnowRoles) {
  EXPECT_EQ(Complete({"logs", "mnist", "w"}), "worker\n:4\n");
  EXPECT_EQ(Complete({"status", "mnist", "w"}), ":4\n");
}

TEST_F(KubectlCompletionTest, AnUnknownCommandHasNothing) {
  EXPECT_EQ(Complete({"nothing", ""}), ":4\n");
  EXPECT_EQ(Complete({}), Complete({""}));
}

}  // namespace
}  // namespace adamant::kubectl
