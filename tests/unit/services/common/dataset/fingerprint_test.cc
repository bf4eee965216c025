#include "services/common/dataset/fingerprint.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "services/common/dataset/input_file.h"
#include "tests/unit/services/common/dataset/temporary_folder.h"

namespace adamant::dataset {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kSampled = kFingerprintBlocks * kFingerprintBlockBytes;

std::uint64_t Of(const std::string& path,
                 FingerprintReading reading = FingerprintReading::kSample) {
  const absl::StatusOr<std::uint64_t> fingerprint = Fingerprint(path, reading);
  EXPECT_TRUE(fingerprint.ok()) << fingerprint.status();
  return fingerprint.value_or(0);
}

std::string Compressed(const std::string& content) {
  return Gzip({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
}

// A file of zeros that takes no room.
std::string WriteSparse(const TemporaryFolder& folder, std::uint64_t bytes) {
  std::string path = folder.Write("sparse", "");
  fs::resize_file(path, bytes);
  return path;
}

void Put(const std::string& path, std::uint64_t offset, char byte) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(static_cast<std::streamoff>(offset));
  file.put(byte);
}

TEST(FingerprintTest, ACopyHasTheSameAndSoHasAFileThatIsTouched) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("file", std::string(300'000, 'x'));
  const std::uint64_t before = Of(file);
  EXPECT_EQ(Of(folder.Write("copy", std::string(300'000, 'x'))), before);
  fs::last_write_time(file, fs::file_time_type::clock::now() - std::chrono::hours(9));
  EXPECT_EQ(Of(file), before);
}

TEST(FingerprintTest, EveryByteOfASmallFileCounts) {
  const TemporaryFolder folder;
  const std::string file = folder.Write("file", std::string(150'001, 'x'));
  const std::uint64_t before = Of(file);
  for (const std::uint64_t offset : {0u, 65'535u, 65'536u, 100'000u, 150'000u}) {
    Put(file, offset, 'y');
    EXPECT_NE(Of(file), before) << offset;
    Put(file, offset, 'x');
  }
  EXPECT_EQ(Of(file), before);
  EXPECT_NE(Of(folder.Write("shorter", std::string(150'000, 'x'))), before);
  EXPECT_NE(Of(folder.Write("empty", "")), before);
}

TEST(FingerprintTest, OfALargeFileItsEndsAndBlocksInBetweenAreLookedAt) {
  const TemporaryFolder folder;
  const std::uint64_t bytes = 16 * kSampled + 12'345;
  const std::string file = WriteSparse(folder, bytes);
  const std::uint64_t before = Of(file);
  const std::uint64_t gap = (bytes - kFingerprintBlockBytes) / (kFingerprintBlocks - 1);
  for (const std::uint64_t offset : {std::uint64_t{0}, 100 * gap + 1'000, bytes - 1}) {
    Put(file, offset, 'y');
    EXPECT_NE(Of(file), before) << offset;
    Put(file, offset, '\0');
  }
  Put(file, 100 * gap + 2 * kFingerprintBlockBytes, 'y');
  EXPECT_EQ(Of(file), before) << "between two blocks";
  EXPECT_NE(Of(file, FingerprintReading::kWhole), before);
  fs::resize_file(file, bytes + 1);
  EXPECT_NE(Of(file), before) << "larger";
}

// Read whole, it would outlast the test's time.
TEST(FingerprintTest, OfAFileOfHundredsOfGigabytesLittleIsRead) {
  const TemporaryFolder folder;
  const std::uint64_t bytes = std::uint64_t{512} << 30;
  const std::string file = WriteSparse(folder, bytes);
  const std::uint64_t before = Of(file);
  Put(file, bytes - 1, 'y');
  EXPECT_NE(Of(file), before);
}

TEST(FingerprintTest, OfACompressedFileAnyChangeShowsInItsLastBlock) {
  const TemporaryFolder folder;
  std::string content(10'000, 'x');
  const std::uint64_t before = Of(folder.Write("file", Compressed(content)));
  EXPECT_EQ(Of(folder.Write("copy", Compressed(content))), before);
  content[5'000] = 'y';
  EXPECT_NE(Of(folder.Write("other", Compressed(content))), before);
}

TEST(FingerprintTest, AFileThatIsNotThereIsAnError) {
  EXPECT_EQ(Fingerprint("/nowhere/file", FingerprintReading::kSample).status().code(),
            absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace adamant::dataset
