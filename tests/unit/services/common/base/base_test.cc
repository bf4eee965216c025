#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "services/common/base/backoff.h"
#include "services/common/base/checksum.h"
#include "services/common/base/clock.h"
#include "services/common/base/rng.h"
#include "services/common/base/system/files.h"
#include "services/common/base/system/huge_pages.h"
#include "services/common/base/system/parallel_for.h"
#include "services/common/base/system/room.h"

namespace adamant {
namespace {

TEST(RngTest, SequenceDependsOnTheSeedAlone) {
  Rng a(7);
  Rng b(7);
  Rng c(8);
  const std::uint64_t first = a();
  EXPECT_EQ(first, b());
  EXPECT_NE(first, c());
}

TEST(RngTest, BelowStaysBelowAndReachesEveryValue) {
  Rng rng(1);
  int seen[5] = {};
  for (int i = 0; i < 1000; ++i) {
    const std::uint64_t value = rng.Below(5);
    ASSERT_LT(value, 5u);
    ++seen[value];
  }
  for (const int count : seen) {
    EXPECT_GT(count, 100);
  }
}

TEST(RngTest, NormalHasMeanZeroAndDeviationOne) {
  Rng rng(3);
  double sum = 0;
  double squares = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = rng.Normal();
    sum += x;
    squares += x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0.0, 0.02);
  EXPECT_NEAR(squares / kDraws, 1.0, 0.03);
}

TEST(BackoffTest, StaysWithinItsBoundsAndStartsOver) {
  const BackoffOptions options{.initial = std::chrono::milliseconds(10),
                               .max = std::chrono::milliseconds(100)};
  Backoff backoff(options, 5);
  for (int i = 0; i < 50; ++i) {
    const auto wait = backoff.Next();
    EXPECT_GE(wait, options.initial);
    EXPECT_LE(wait, options.max);
  }
  backoff.Reset();
  EXPECT_LE(backoff.Next(), 3 * options.initial);
}

class WriteFileTest : public testing::Test {
 protected:
  WriteFileTest() { std::filesystem::create_directories(folder_); }
  ~WriteFileTest() override { std::filesystem::remove_all(folder_); }

  const std::filesystem::path folder_ =
      std::filesystem::path(testing::TempDir()) / ("write_file_" + std::to_string(getpid()));
  const std::filesystem::path file_ = folder_ / "file";
  const std::filesystem::path link_ = folder_ / "link";
};

TEST_F(WriteFileTest, ARegularFileIsReplaced) {
  ASSERT_TRUE(WriteFile(file_, "a long first content").ok());
  ASSERT_TRUE(WriteFile(file_, "second").ok());
  EXPECT_EQ(ReadFile(file_, 100).value(), "second");
}

TEST_F(WriteFileTest, LinksStayAndWhatTheyEndAtIsWritten) {
  std::filesystem::create_directories(folder_ / "inner");
  std::filesystem::create_symlink("../file", folder_ / "inner" / "second");
  std::filesystem::create_symlink("inner/second", link_);
  for (const std::string content : {"a long first content", "second"}) {  // made, then replaced
    ASSERT_TRUE(WriteFile(link_, content).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(link_));
    EXPECT_FALSE(std::filesystem::is_symlink(file_));
    EXPECT_EQ(ReadFile(file_, 100).value(), content);
  }
}

TEST_F(WriteFileTest, ALinkThatEndsAtNothingIsNamedWithWhereItLeads) {
  std::filesystem::create_symlink("/nowhere/at/all", folder_ / "link");
  EXPECT_EQ(ReadFile(folder_ / "link", 10).status().message(),
            "cannot open " + (folder_ / "link").string() +
                ": No such file or directory (it is a link to /nowhere/at/all)");
}

TEST_F(WriteFileTest, ALinkThatLeadsNowhereIsToldFromWhatIsNotThereAndFromOthers) {
  EXPECT_FALSE(LeadsNowhere(file_));
  std::filesystem::create_symlink("file", link_);
  EXPECT_TRUE(LeadsNowhere(link_));
  EXPECT_EQ(
      Misplaced(link_, std::filesystem::file_type::not_found, std::filesystem::file_type::directory)
          .message(),
      link_.string() +
          ": is a link that leads nowhere (to file: is its disk mounted?), where a folder "
          "belongs");
  ASSERT_TRUE(WriteFile(file_, "").ok());
  EXPECT_FALSE(LeadsNowhere(link_));
  EXPECT_FALSE(LeadsNowhere(file_));
  std::filesystem::create_symlink("circle", folder_ / "circle");
  EXPECT_FALSE(LeadsNowhere(folder_ / "circle"));
}

TEST_F(WriteFileTest, LinksInACircleAreAnError) {
  std::filesystem::create_symlink("link", link_);
  EXPECT_FALSE(WriteFile(link_, "content").ok());
}

TEST_F(WriteFileTest, APipeIsWrittenThrough) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  std::filesystem::create_symlink("file", link_);
  const int reader = open(file_.c_str(), O_RDWR | O_CLOEXEC);  // so that writers need not wait
  ASSERT_TRUE(WriteFile(link_, "content").ok());
  char read_back[16] = {};
  EXPECT_EQ(read(reader, read_back, sizeof(read_back)), 7);
  EXPECT_STREQ(read_back, "content");
  close(reader);
  EXPECT_TRUE(std::filesystem::is_fifo(file_));
}

TEST_F(WriteFileTest, WhatIsNoFileIsNotWrittenWhereThatIsRefused) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const absl::Status status = WriteFile(file_, "content", Pipes::kRefused);  // nobody reads it
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_EQ(status.message(), file_.string() + ": is a FIFO, where a file belongs");
  ASSERT_EQ(rename(file_.c_str(), (file_.string() + ".tmp").c_str()), 0);
  EXPECT_FALSE(WriteFileAtomically(file_, "content").ok());
  EXPECT_TRUE(WriteFileAtomically(file_, "content").ok());  // it is gone
}

TEST_F(WriteFileTest, ADeviceIsWrittenThrough) {
  const absl::Status status = WriteFile("/dev/full", "content");
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
  EXPECT_TRUE(WriteFile("/dev/null", "content").ok());
}

TEST_F(WriteFileTest, WhatIsNoFileIsReadOnlyWhereAUserMayNameIt) {
  ASSERT_EQ(mkfifo(file_.c_str(), 0600), 0);
  const absl::Status fifo = ReadFile(file_, 100).status();  // nobody writes to it
  EXPECT_TRUE(absl::IsDataLoss(fifo));
  EXPECT_EQ(fifo.message(), file_.string() + ": is a FIFO, where a file belongs");
  const absl::Status folder = ReadFile(folder_, 100).status();
  EXPECT_EQ(folder.message(), folder_.string() + ": is a folder, where a file belongs");
  EXPECT_TRUE(absl::IsDataLoss(ReadFile("/dev/zero", 100).status()));
  const int writer = open(file_.c_str(), O_RDWR | O_CLOEXEC);  // so that readers need not wait
  ASSERT_EQ(write(writer, std::string(101, 'x').data(), 101), 101);
  EXPECT_TRUE(absl::IsOutOfRange(ReadFile(file_, 100, Pipes::kRead).status()));
  close(writer);
}

TEST_F(WriteFileTest, AFileThatIsTooLargeIsNotRead) {
  ASSERT_TRUE(WriteFile(file_, "").ok());
  std::filesystem::resize_file(file_, std::uintmax_t{1} << 40);  // would not fit into memory
  EXPECT_TRUE(absl::IsOutOfRange(ReadFile(file_, std::uint64_t{1} << 39).status()));
}

TEST(FilesTest, AFileThatMayNotGrowIsNotCalledAFullDisk) {
  const absl::Status full = SystemError(ENOSPC, "cannot write", "/data/file");
  const absl::Status limited = SystemError(EFBIG, "cannot write", "/data/file");
  EXPECT_TRUE(absl::IsResourceExhausted(full));
  EXPECT_TRUE(absl::IsResourceExhausted(limited));
  EXPECT_EQ(DescribeFull(full), "disk full: cannot write /data/file: No space left on device");
  EXPECT_EQ(
      DescribeFull(limited),
      "cannot write: a file may not grow (ulimit -f): cannot write /data/file: File too large");
}

TEST(FilesTest, WrittenFileIsReadBackAndLimitIsKept) {
  const auto path =
      std::filesystem::temp_directory_path() / ("adamant_files_test_" + std::to_string(getpid()));
  ASSERT_TRUE(WriteFileAtomically(path, "hello").ok());
  EXPECT_EQ(ReadFile(path, 5).value(), "hello");
  EXPECT_EQ(ReadFile(path, 4).status().code(), absl::StatusCode::kOutOfRange);
  std::filesystem::remove(path);
  const absl::Status missing = ReadFile(path, 5).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_NE(missing.message().find(path.string()), std::string::npos);
}

TEST(ChecksumTest, ChangesWithEveryByte) {
  std::byte bytes[64] = {};
  const std::uint64_t before = Checksum(bytes);
  bytes[63] = std::byte{1};
  EXPECT_NE(before, Checksum(bytes));
}

TEST(ClockTest, NeverGoesBack) {
  const SystemClock clock;
  auto last = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const auto now = clock.Now();
    ASSERT_GE(now, last);
    last = now;
  }
}

TEST(ParallelForTest, EveryIndexIsVisitedOnceAndAllAreDoneAtTheReturn) {
  for (const std::size_t count : {0, 1, 2, 100}) {
    for (const ParallelFor& parallel_for :
         {ParallelFor(OneByOne), OnThreads(1), OnThreads(2), OnThreads(8)}) {
      std::vector<std::atomic<int>> visits(count);
      parallel_for(count, [&](std::size_t i) { ++visits[i]; });
      for (const auto& visit : visits) {
        EXPECT_EQ(visit, 1);
      }
    }
  }
}

/// The flags of the mapping that holds this address; "" if the system has no such thing.
std::string MappingFlags(const void* address) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> begin >> dash >> end && dash == '-') {
      inside = begin <= wanted && wanted < end;
    } else if (inside && line.starts_with("VmFlags:")) {
      return line + " ";
    }
  }
  return "";
}

TEST(RoomTest, WhatNoAddressSpaceHoldsIsNotThere) {
  EXPECT_TRUE(HasRoomFor(4096));
  EXPECT_FALSE(HasRoomFor(std::size_t{1} << 60));
}

TEST(HugePagesTest, AreAskedForUnderLargeMemoryAndNotBesideIt) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) {
    GTEST_SKIP() << "this system has none";
  }
  constexpr std::size_t kSize = std::size_t{16} << 20;
  char* memory = static_cast<char*>(
      mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(MappingFlags(memory + kSize / 4).find(" hg "), std::string::npos);
  PreferHugePages(memory, kSize / 2);
  EXPECT_NE(MappingFlags(memory + kSize / 4).find(" hg "), std::string::npos);
  EXPECT_EQ(MappingFlags(memory + kSize / 2).find(" hg "), std::string::npos);
  PreferHugePages(memory + kSize / 2, 1000);  // holds none
  EXPECT_EQ(MappingFlags(memory + kSize / 2).find(" hg "), std::string::npos);
  munmap(memory, kSize);
}

}  // namespace
}  // namespace adamant
