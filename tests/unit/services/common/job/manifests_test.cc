// Runs the corpus under tests/manifests: bad manifests, one fault each with the expected
// diagnostics beside it (NAME.expected), and good ones.
//
// ADAMANT_WRITE_EXPECTED=1 writes the diagnostics of today in place of comparing them.

#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/job.h"

namespace adamant::job {
namespace {

const std::filesystem::path kManifests =
    std::filesystem::path(ADAMANT_SOURCE_DIR) / "tests" / "manifests";

std::vector<std::filesystem::path> YamlFilesIn(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") {
      files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::string Content(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

/// All diagnostics of a manifest, with paths shortened to what lies under tests/manifests.
std::string DiagnosticsOf(const std::filesystem::path& manifest) {
  std::string text;
  for (const Diagnostic& problem : LoadJob(manifest).problems) {
    text += Format(problem) + "\n";
  }
  const std::string prefix = kManifests.string() + "/";
  for (std::size_t at = text.find(prefix); at != std::string::npos; at = text.find(prefix, at)) {
    text.erase(at, prefix.size());
  }
  return text;
}

class BadManifest : public testing::TestWithParam<std::filesystem::path> {};
class GoodManifest : public testing::TestWithParam<std::filesystem::path> {};

std::string NameOf(const testing::TestParamInfo<std::filesystem::path>& info) {
  return info.param.stem().string();
}

TEST_P(BadManifest, IsRefusedWithTheExpectedDiagnostics) {
  const std::string diagnostics = DiagnosticsOf(GetParam());
  ASSERT_NE(diagnostics, "");
  std::filesystem::path expected = GetParam();
  expected.replace_extension(".expected");
  if (std::getenv("ADAMANT_WRITE_EXPECTED") != nullptr) {
    std::ofstream(expected, std::ios::binary) << diagnostics;
  }
  EXPECT_EQ(diagnostics, Content(expected));
}

INSTANTIATE_TEST_SUITE_P(Corpus,
                         BadManifest,
                         testing::ValuesIn(YamlFilesIn(kManifests / "bad")),
                         NameOf);

TEST_P(GoodManifest, IsReadAndWrittenBackTheSame) {
  const ParseResult first = LoadJob(GetParam());
  ASSERT_NE(first.job, nullptr) << DiagnosticsOf(GetParam());
  const std::string yaml = ToYaml(*first.job);
  const ParseResult second = ParseJob(yaml, "again.yaml");
  ASSERT_NE(second.job, nullptr) << Format(second.problems.front()) << "\n" << yaml;
  EXPECT_TRUE(google::protobuf::util::MessageDifferencer::Equals(*first.job, *second.job)) << yaml;
  EXPECT_EQ(ToYaml(*second.job), yaml);
}

TEST_P(GoodManifest, HasANetThatPassesTheModelsCheck) {
  const ParseResult result = LoadJob(GetParam());
  ASSERT_NE(result.job, nullptr) << DiagnosticsOf(GetParam());
  EXPECT_TRUE(model::BuildGraph(NetOf(*result.job)).ok());
}

INSTANTIATE_TEST_SUITE_P(Corpus,
                         GoodManifest,
                         testing::ValuesIn(YamlFilesIn(kManifests / "good")),
                         NameOf);

TEST(ManifestCorpusTest, HasAtLeastEightyBadManifests) {
  EXPECT_GE(YamlFilesIn(kManifests / "bad").size(), 80U);
}

TEST(ManifestCorpusTest, HasNoExpectationWithoutItsManifest) {
  for (const auto& entry : std::filesystem::directory_iterator(kManifests / "bad")) {
    std::filesystem::path manifest = entry.path();
    manifest.replace_extension(".yaml");
    EXPECT_TRUE(std::filesystem::exists(manifest)) << entry.path();
  }
}

}  // namespace
}  // namespace adamant::job
