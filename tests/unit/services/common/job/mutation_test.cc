// Feeds the parser damaged manifests: whatever the bytes, it returns a job or problems, never both
// or neither.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/rng.h"
#include "services/common/job/job.h"

namespace adamant::job {
namespace {

std::vector<std::string> Originals() {
  std::vector<std::filesystem::path> files;
  const auto folder = std::filesystem::path(ADAMANT_SOURCE_DIR) / "tests" / "manifests" / "good";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const std::filesystem::path& file : files) {
    std::ostringstream content;
    content << std::ifstream(file, std::ios::binary).rdbuf();
    texts.push_back(content.str());
  }
  return texts;
}

void FlipBit(std::string& text, Rng& rng) {
  if (!text.empty()) {
    char& byte = text[rng.Below(text.size())];
    byte = static_cast<char>(static_cast<unsigned char>(byte) ^ (1U << rng.Below(8)));
  }
}

void PutYamlCharacter(std::string& text, Rng& rng) {
  constexpr std::string_view kSpecial = "{}[]:,-&*!|>'\"%@`?#~\n\t ";
  if (!text.empty()) {
    text[rng.Below(text.size())] = kSpecial[rng.Below(kSpecial.size())];
  }
}

void RemoveRange(std::string& text, Rng& rng) {
  const std::size_t begin = rng.Below(text.size() + 1);
  text.erase(begin, rng.Below(40));
}

void RepeatRange(std::string& text, Rng& rng) {
  const std::size_t begin = rng.Below(text.size() + 1);
  text.insert(rng.Below(text.size() + 1), text.substr(begin, rng.Below(200)));
}

void Mutate(std::string& text, Rng& rng) {
  switch (rng.Below(5)) {
    case 0:
      return FlipBit(text, rng);
    case 1:
      return PutYamlCharacter(text, rng);
    case 2:
      return RemoveRange(text, rng);
    case 3:
      return RepeatRange(text, rng);
    default:
      return text.resize(rng.Below(text.size() + 1));
  }
}

void ExpectJobOrProblems(const std::string& text, const std::string& what) {
  const ParseResult result = ParseJob(text, "mutated.yaml");
  ASSERT_EQ(result.job == nullptr, !result.problems.empty()) << what;
  for (const Diagnostic& problem : result.problems) {
    const std::string line = Format(problem);
    ASSERT_EQ(line.find('\n'), std::string::npos) << what;
  }
  if (result.job != nullptr) {
    const std::string yaml = ToYaml(*result.job);
    ASSERT_NE(ParseJob(yaml, "again.yaml").job, nullptr) << what << "\n" << yaml;
  }
}

TEST(MutationTest, DamagedManifestsGiveAJobOrProblems) {
  const std::vector<std::string> originals = Originals();
  constexpr int kCases = 4000;
  for (int seed = 0; seed < kCases; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed));
    std::string text = originals[rng.Below(originals.size())];
    const std::uint64_t mutations = 1 + rng.Below(4);
    for (std::uint64_t i = 0; i < mutations; ++i) {
      Mutate(text, rng);
    }
    ASSERT_NO_FATAL_FAILURE(ExpectJobOrProblems(text, "seed " + std::to_string(seed)));
  }
}

TEST(MutationTest, EveryTruncationGivesAJobOrProblems) {
  for (const std::string& original : Originals()) {
    for (std::size_t size = 0; size < std::min<std::size_t>(original.size(), 400); ++size) {
      ASSERT_NO_FATAL_FAILURE(
          ExpectJobOrProblems(original.substr(0, size), "size " + std::to_string(size)));
    }
  }
}

TEST(MutationTest, LargeRepetitiveFilesGiveProblems) {
  constexpr std::size_t kSize = std::size_t{1} << 18;
  for (const std::string_view piece : {"[",
                                       "{",
                                       "- ",
                                       "? ",
                                       "a: ",
                                       "a:\n",
                                       "- - ",
                                       "&a ",
                                       "*a ",
                                       "!!",
                                       "'",
                                       "\"",
                                       "%",
                                       "---\n",
                                       "{a: "}) {
    std::string text;
    while (text.size() < kSize) {
      text += piece;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectJobOrProblems(text, std::string(piece)));
  }
}

}  // namespace
}  // namespace adamant::job
