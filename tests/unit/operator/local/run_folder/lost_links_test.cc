#include "operator/local/run_folder/lost_links.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

namespace adamant::local {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

/// Three servers with whole folders.
class LostLinksTest : public testing::Test {
 protected:
  LostLinksTest() {
    for (std::uint32_t server = 0; server < 3; ++server) {
      for (const char* const name : {"records", "segments"}) {
        fs::create_directories(paths_.shards_of(server) / name);
      }
    }
  }
  ~LostLinksTest() override { fs::remove_all(paths_.root); }

  static void Unmount(const fs::path& folder) {
    fs::remove_all(folder);
    fs::create_symlink("/nowhere/at/all", folder);
  }

  [[nodiscard]] std::string Said(std::uint32_t server, std::uint32_t copies) const {
    return std::string(CheckLinks(paths_, server, {.count = 3, .copies = copies}).message());
  }

  const RunPaths paths_{fs::temp_directory_path() / ("adamant_links_" + std::to_string(getpid()))};
};

TEST_F(LostLinksTest, TheOnlyCopyIsNotGivenUpForALinkThatLeadsNowhere) {
  EXPECT_EQ(Said(0, 1), "");
  const fs::path shards = paths_.shards_of(0);
  for (const fs::path& link :
       {shards / "segments", shards / "records", shards, paths_.store_of(0)}) {
    Unmount(link);
    EXPECT_THAT(Said(0, 1),
                AllOf(StartsWith(link.string() + ": is a link that leads nowhere"),
                      HasSubstr("mount what it leads to, or remove the link")));
    EXPECT_TRUE(fs::is_symlink(link)) << "it stays";
    EXPECT_EQ(Said(1, 1), "") << "its own folder is there";
    EXPECT_EQ(Said(0, 2), "") << "another has it";
  }
}

TEST_F(LostLinksTest, NorAreAllCopiesBehindLinks) {
  Unmount(paths_.store_of(0));
  Unmount(paths_.shards_of(2));
  EXPECT_THAT(Said(0, 2), HasSubstr(paths_.store_of(0).string()));
  EXPECT_THAT(Said(2, 2), HasSubstr(paths_.shards_of(2).string()));
  EXPECT_EQ(Said(0, 3), "");
  Unmount(paths_.store_of(1));
  EXPECT_NE(Said(0, 3), "");
}

TEST_F(LostLinksTest, AServerThatHasNotBegunHasNoFolderAndMayBegin) {
  fs::remove_all(paths_.store_of(0));
  EXPECT_EQ(Said(0, 1), "");
}

}  // namespace
}  // namespace adamant::local
