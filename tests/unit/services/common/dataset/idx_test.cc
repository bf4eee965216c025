#include "services/common/dataset/idx.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/base/system/files.h"
#include "services/common/dataset/input_file.h"
#include "tests/unit/services/common/dataset/temporary_folder.h"

namespace adamant::dataset {
namespace {

std::string BigEndian(std::uint32_t value) {
  return {static_cast<char>(value >> 24),
          static_cast<char>(value >> 16),
          static_cast<char>(value >> 8),
          static_cast<char>(value)};
}

// An IDX file of unsigned bytes.
std::string Idx(const std::vector<std::uint32_t>& dimensions, const std::string& elements) {
  std::string file = {'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  for (const std::uint32_t dimension : dimensions) {
    file += BigEndian(dimension);
  }
  return file + elements;
}

std::string GzipOf(const std::string& content) {
  return Gzip({reinterpret_cast<const std::uint8_t*>(content.data()), content.size()});
}

std::string Ramp(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) {
    text[i] = static_cast<char>(i * 7);
  }
  return text;
}

const std::string kGoodImages = Idx({5, 4, 3}, Ramp(60));
const std::string kGoodLabels = Idx({5}, std::string("\0\1\2\3\4", 5));

TEST(IdxTest, ReadsPlainAndCompressedFilesAlike) {
  const TemporaryFolder folder;
  const IdxPaths plain = {folder.Write("images", kGoodImages), folder.Write("labels", kGoodLabels)};
  const IdxPaths compressed = {folder.Write("images.gz", GzipOf(kGoodImages)),
                               folder.Write("labels.gz", GzipOf(kGoodLabels))};
  for (const IdxPaths& paths : {plain, compressed}) {
    const absl::StatusOr<Dataset> set = ReadIdx(paths, {.classes = 5});
    ASSERT_TRUE(set.ok()) << set.status();
    EXPECT_TRUE(VerifyIdx(paths, {.classes = 5}).ok());
    EXPECT_EQ(set->size(), 5u);
    EXPECT_EQ(set->channels, 1u);
    EXPECT_EQ(set->height, 4u);
    EXPECT_EQ(set->width, 3u);
    EXPECT_EQ(std::string(set->images.begin(), set->images.end()), Ramp(60));
    EXPECT_EQ(set->image(2)[0], static_cast<std::uint8_t>(24 * 7));
    EXPECT_EQ(set->labels, (std::vector<std::uint8_t>{0, 1, 2, 3, 4}));
    EXPECT_EQ(InspectIdx(paths).value().width, 3u);
    EXPECT_EQ(CheckIdx(paths, {.classes = 5}).value().examples, 5u);
  }
}

TEST(IdxTest, SeveralGzipMembersAreOneContent) {
  const TemporaryFolder folder;
  const std::string images = GzipOf(kGoodImages.substr(0, 30)) + GzipOf(kGoodImages.substr(30));
  const IdxPaths paths = {folder.Write("images", images), folder.Write("labels", kGoodLabels)};
  const absl::StatusOr<Dataset> set = ReadIdx(paths);
  ASSERT_TRUE(set.ok()) << set.status();
  EXPECT_EQ(std::string(set->images.begin(), set->images.end()), Ramp(60));
}

TEST(IdxTest, WrittenDataSetsAreReadBackWithTheirChannels) {
  const TemporaryFolder folder;
  for (const std::uint32_t channels : {1u, 3u}) {
    Dataset set{.channels = channels, .height = 5, .width = 4, .images = {}, .labels = {1, 0, 2}};
    const std::string pixels = Ramp(3 * set.example_bytes());
    set.images.assign(pixels.begin(), pixels.end());
    const IdxPaths paths = MnistPaths(folder.path(), "c" + std::to_string(channels));
    ASSERT_TRUE(WriteIdx(set, paths).ok());
    const Dataset read = ReadIdx(paths).value();
    EXPECT_EQ(read.channels, channels);
    EXPECT_EQ(read.images, set.images);
    EXPECT_EQ(read.labels, set.labels);
    const std::string bytes = ReadFile(paths.images, 1 << 20).value();
    ASSERT_TRUE(WriteIdx(set, paths).ok());
    EXPECT_EQ(ReadFile(paths.images, 1 << 20).value(), bytes);
  }
}

// A pair of files with a fault: the message must hold all of `expected`, after the file's path.
struct Fault {
  std::string images;
  std::string labels;
  std::string file;  // at fault
  std::vector<std::string> expected;
};

std::string WithByte(std::string text, std::size_t offset, char value) {
  text[offset] = value;
  return text;
}

std::vector<Fault> HeaderFaults() {
  const std::string& i = kGoodImages;
  const std::string& l = kGoodLabels;
  return {
      {"", l, "images", {"offset 0", "header", "end of the file"}},
      {i.substr(0, 1), l, "images", {"offset 1", "header", "truncated"}},
      {i.substr(0, 3), l, "images", {"offset 3", "header", "truncated"}},
      {i.substr(0, 4), l, "images", {"offset 4", "3 dimensions", "truncated"}},
      {i.substr(0, 14), l, "images", {"offset 14", "3 dimensions", "truncated"}},
      {i, "", "labels", {"offset 0", "header", "end of the file"}},
      {i, l.substr(0, 6), "labels", {"offset 6", "1 dimensions", "truncated"}},
      {WithByte(i, 0, 1), l, "images", {"offset 0", "first two bytes are 0", "found 0x01 0x00"}},
      {WithByte(i, 1, 'P'), l, "images", {"offset 0", "found 0x00 0x50"}},
      {WithByte(i, 2, 0x0D), l, "images", {"offset 2", "0x08", "0x0d (32-bit floats)"}},
      {WithByte(i, 2, 0x09), l, "images", {"offset 2", "0x08", "signed bytes"}},
      {WithByte(i, 2, 0x77), l, "images", {"offset 2", "0x08", "0x77 (an unknown type)"}},
      {WithByte(i, 3, 0), l, "images", {"offset 3", "3 or 4 dimension", "found 0"}},
      {WithByte(i, 3, 2), l, "images", {"offset 3", "3 or 4 dimension", "found 2"}},
      {WithByte(i, 3, '\xff'), l, "images", {"offset 3", "found 255"}},
      {l, l, "images", {"offset 3", "found 1", "is this the file of labels?"}},
      {i, i, "labels", {"offset 3", "found 3", "is this the file of images?"}},
      {i, WithByte(l, 2, 0x0C), "labels", {"offset 2", "0x08", "32-bit integers"}},
      {"\x89PNG\r\n\x1a\n and so on", l, "images", {"offset 0", "found 0x89 0x50"}},
  };
}

std::vector<Fault> SizeFaults() {
  const std::string& i = kGoodImages;
  const std::string& l = kGoodLabels;
  const std::uint32_t huge = 0xffffffff;
  return {
      {Idx({0, 4, 3}, ""), l, "images", {"offset 4", "at least 1", "found 0"}},
      {Idx({5, 0, 3}, ""), l, "images", {"offset 8", "at least 1", "found 0"}},
      {i, Idx({0}, ""), "labels", {"offset 4", "at least 1", "found 0"}},
      {Idx({huge, huge, huge}, Ramp(60)), l, "images", {"offset 4", "at most", "4294967295 x"}},
      {Idx({huge, huge, huge, huge}, ""), l, "images", {"offset 4", "at most"}},
      {Idx({60000, 28, 28}, Ramp(60)), l, "images", {"offset 4", "47040016 bytes", "holds 76"}},
      {GzipOf(Idx({60000, 28, 28}, Ramp(60))), l, "images", {"offset 4", "promise", "at most"}},
      {i.substr(0, 75), l, "images", {"offset 4", "76 bytes", "holds 75", "truncated"}},
      {i + "x", l, "images", {"offset 76", "end of the file", "1 trailing bytes"}},
      {i, l + "xyz", "labels", {"offset 13", "end of the file", "3 trailing bytes"}},
      {i, l.substr(0, 12), "labels", {"offset 4", "13 bytes", "holds 12"}},
      {Idx({4, 4, 3}, Ramp(48)), l, "labels", {"offset 4", "4 labels", "images", "found 5"}},
      {i, Idx({6}, Ramp(6)), "labels", {"offset 4", "5 labels", "found 6"}},
      {i, WithByte(l, 10, 10), "labels", {"offset 10", "below 10", "found 10"}},
      {i, WithByte(l, 8, '\xff'), "labels", {"offset 8", "below 10", "found 255"}},
  };
}

std::vector<Fault> GzipFaults() {
  const std::string& l = kGoodLabels;
  const std::string i = GzipOf(kGoodImages);
  return {
      {i.substr(0, 12), l, "images", {"compressed file", "truncated"}},
      {i.substr(0, i.size() / 2), l, "images", {"compressed file", "truncated"}},
      {i.substr(0, i.size() - 4), l, "images", {"compressed file", "truncated"}},
      {WithByte(i, i.size() - 6, 'x'), l, "images", {"compressed file", "incorrect data check"}},
      {WithByte(i, i.size() - 1, 'x'), l, "images", {"compressed file", "incorrect length check"}},
      {WithByte(i, 2, 3), l, "images", {"compressed file", "unknown compression method"}},
      {i + "trailing", l, "images", {"compressed file", "incorrect header check"}},
      {GzipOf(kGoodImages + "more"), l, "images", {"offset 76", "trailing bytes"}},
      {GzipOf(kGoodImages.substr(0, 50)), l, "images", {"offset 50", "60 elements", "truncated"}},
      {GzipOf(""), l, "images", {"offset 0", "header", "truncated"}},
      {GzipOf(i), l, "images", {"offset 0", "found 0x1f 0x8b"}},
      {kGoodImages, GzipOf(kGoodLabels.substr(0, 9)), "labels", {"offset 9", "5 elements"}},
  };
}

class IdxFaultTest : public testing::TestWithParam<std::function<std::vector<Fault>()>> {};

TEST_P(IdxFaultTest, IsRefusedNamingFileOffsetAndWhatWasExpected) {
  const TemporaryFolder folder;
  for (const Fault& fault : GetParam()()) {
    const IdxPaths paths = {folder.Write("images", fault.images),
                            folder.Write("labels", fault.labels)};
    const absl::Status status = ReadIdx(paths, {.classes = 10}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status) || absl::IsDataLoss(status)) << status;
    EXPECT_EQ(VerifyIdx(paths, {.classes = 10}).status(), status) << "though it keeps no pixels";
    EXPECT_EQ(status.message().find(folder.path() + "/" + fault.file + ": "), 0u) << status;
    for (const std::string& part : fault.expected) {
      EXPECT_NE(status.message().find(part), std::string::npos)
          << "expected \"" << part << "\" in: " << status;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, IdxFaultTest, testing::Values(HeaderFaults, SizeFaults, GzipFaults));

TEST(IdxTest, MissingFileFolderAndLimitAreNamed) {
  const TemporaryFolder folder;
  const IdxPaths paths = {folder.Write("images", kGoodImages), folder.path() + "/missing"};
  EXPECT_EQ(ReadIdx(paths).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ReadIdx({folder.path(), folder.path()}).status().message(),
            folder.path() + ": expected a regular file");
  const std::string fifo = folder.path() + "/fifo";  // that nobody writes to
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(ReadIdx({fifo, fifo}).status().message(), fifo + ": expected a regular file");
  const std::string big = Idx({100, 28, 28}, Ramp(78400));
  const absl::Status status =
      ReadIdx({folder.Write("big", big), paths.labels}, {.max_bytes = 78400}).status();
  EXPECT_NE(status.message().find("at most 78400 bytes"), std::string::npos) << status;
}

// A file in memory, because thousands of them are read.
class MemoryFile {
 public:
  explicit MemoryFile(const std::string& content) : descriptor_(memfd_create("idx", MFD_CLOEXEC)) {
    EXPECT_EQ(write(descriptor_, content.data(), content.size()),
              static_cast<ssize_t>(content.size()));
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  const int descriptor_;
};

// Changes, removes or inserts a few bytes.
std::string Mutate(std::string text, Rng& rng) {
  const std::uint64_t changes = 1 + rng.Below(4);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = rng.Below(text.size());
    switch (rng.Below(4)) {
      case 0:
        text[at] = static_cast<char>(rng());
        break;
      case 1:
        text[at] = static_cast<char>(text[at] ^ (1 << rng.Below(8)));
        break;
      case 2:
        text.erase(at, 1 + rng.Below(8));
        break;
      default:
        text.insert(at, 1 + rng.Below(8), static_cast<char>(rng()));
        break;
    }
  }
  return text;
}

TEST(IdxTest, MutatedFilesGiveADataSetThatHoldsOrAnError) {
  int refused = 0;
  constexpr int kCases = 3000;
  for (int seed = 0; seed < kCases; ++seed) {
    Rng rng(static_cast<std::uint64_t>(seed));
    const bool compressed = rng.Below(2) == 0;
    const bool images_at_fault = rng.Below(3) != 0;
    std::string images = compressed ? GzipOf(kGoodImages) : kGoodImages;
    std::string labels = compressed ? GzipOf(kGoodLabels) : kGoodLabels;
    std::string& mutated = images_at_fault ? images : labels;
    mutated = Mutate(mutated, rng);
    const MemoryFile image_file(images);
    const MemoryFile label_file(labels);
    const absl::StatusOr<Dataset> set =
        ReadIdx({image_file.path(), label_file.path()}, {.classes = 10});
    if (set.ok()) {
      EXPECT_EQ(set->images.size(), set->size() * set->example_bytes()) << "seed " << seed;
    } else {
      EXPECT_FALSE(set.status().message().empty()) << "seed " << seed;
      ++refused;
    }
  }
  EXPECT_GT(refused, kCases / 2);
}

TEST(DatasetTest, TheMostFrequentClassIsCounted) {
  EXPECT_EQ(Dataset{}.most_frequent(), 0u);
  Dataset set;
  set.labels = {0, 255, 7, 255, 7, 255};
  EXPECT_EQ(set.most_frequent(), 3u);
}

}  // namespace
}  // namespace adamant::dataset
