// docs/manifest.md says what job.proto says. ADAMANT_WRITE_EXPECTED=1 writes the page anew.

#include "tests/unit/services/common/job/manifest_page.h"

#include <gmock/gmock.h>
#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "services/common/job/yaml/comments.h"

namespace adamant::job {
namespace {

std::string Content(const std::filesystem::path& path) {
  std::ostringstream content;
  content << std::ifstream(path, std::ios::binary).rdbuf();
  return content.str();
}

Comments JobComments() {
  google::protobuf::FileDescriptorSet files;
  EXPECT_TRUE(files.ParseFromString(Content(ADAMANT_SCHEMA_DESCRIPTORS)));
  return Comments(files);
}

TEST(ManifestPageTest, ThePageIsMadeFromTheSchema) {
  const std::filesystem::path root = ADAMANT_SOURCE_DIR;
  const std::string page = ManifestPage(JobComments());
  if (std::getenv("ADAMANT_WRITE_EXPECTED") != nullptr) {
    std::ofstream(root / "docs/manifest.md", std::ios::binary) << page;
  }
  EXPECT_EQ(Content(root / "docs/manifest.md"), page)
      << "job.proto has changed: run this test with ADAMANT_WRITE_EXPECTED=1";
}

TEST(ManifestPageTest, EveryFieldAndValueHasAComment) {
  const std::string page = ManifestPage(JobComments());
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("|  |\n")));
  EXPECT_THAT(page, testing::Not(testing::HasSubstr("`: \n")));
  EXPECT_THAT(page, testing::HasSubstr("Learning rate, before the schedule."));
}

}  // namespace
}  // namespace adamant::job
