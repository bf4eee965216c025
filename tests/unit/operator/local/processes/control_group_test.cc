#include "operator/local/processes/control_group.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace adamant::local {
namespace {

class ControlGroupTest : public testing::Test {
 protected:
  ~ControlGroupTest() override { std::filesystem::remove_all(root_); }

  void Write(const std::string& file, const std::string& content) const {
    std::filesystem::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << content;
  }

  void WriteGroup(const std::string& name, const std::string& most, const std::string& used) const {
    const std::string folder = "sys/fs/cgroup/" + name;
    Write(folder + "memory.events", "low 0\nhigh 0\nmax 7\noom 2\noom_kill 2\n");
    Write(folder + "memory.max", most + "\n");
    Write(folder + "memory.current", used + "\n");
    Write(folder + "memory.stat", "anon 1\nfile 9\ninactive_file 100\nactive_file 50\n");
  }

  const std::filesystem::path root_ = std::filesystem::temp_directory_path() /
                                      ("adamant_control_group_" + std::to_string(getpid()));
};

TEST_F(ControlGroupTest, TheGroupThatLeavesLeastCountsAndWhatIsCachedIsFree) {
  Write("proc/meminfo", "MemTotal: 900 kB\nMemFree: 1 kB\nMemAvailable:  10 kB\n");
  Write("proc/self/cgroup", "0::/users/a\n");
  EXPECT_EQ(ControlGroup(root_).FreeMemory(), 10'240u);
  WriteGroup("users/a/", "9000", "1000");
  EXPECT_EQ(ControlGroup(root_).FreeMemory(), 8'150u);
  WriteGroup("users/", "3000", "2500");
  EXPECT_EQ(ControlGroup(root_).FreeMemory(), 650u);
  WriteGroup("users/", "max", "2500");
  EXPECT_EQ(ControlGroup(root_).FreeMemory(), 8'150u);
  WriteGroup("users/a/", "900", "2000");
  EXPECT_EQ(ControlGroup(root_).FreeMemory(), 0u);
}

TEST_F(ControlGroupTest, AContainerSeesItsGroupAtTheTop) {
  Write("proc/meminfo", "MemAvailable: 10 kB\n");
  Write("proc/self/cgroup", "0::/\n");
  WriteGroup("", "3000", "1000");
  EXPECT_EQ(ControlGroup(root_).FreeMemory(), 2'150u);
  EXPECT_EQ(ControlGroup(root_).OomKills(), 2u);
}

TEST_F(ControlGroupTest, KillsOfTheMachineCountWhereThereIsNoGroup) {
  EXPECT_EQ(ControlGroup(root_).OomKills(), 0u);
  EXPECT_EQ(ControlGroup(root_).FreeMemory(), std::nullopt);
  Write("proc/vmstat", "nr_free_pages 3\noom_kill 5\n");
  EXPECT_EQ(ControlGroup(root_).OomKills(), 5u);
}

TEST_F(ControlGroupTest, EachKillIsTakenOnceAndOlderOnesNever) {
  Write("proc/vmstat", "oom_kill 5\n");
  OomKillCounter counter(root_);
  EXPECT_FALSE(counter.TakeOne());
  Write("proc/vmstat", "oom_kill 7\n");
  EXPECT_TRUE(counter.TakeOne());
  EXPECT_TRUE(counter.TakeOne());
  EXPECT_FALSE(counter.TakeOne());
}

TEST_F(ControlGroupTest, ThisMachineHasMemory) {
  EXPECT_GT(ControlGroup().FreeMemory().value_or(0), 1u << 20);
}

}  // namespace
}  // namespace adamant::local
