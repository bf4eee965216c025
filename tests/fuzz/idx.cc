// A data set in IDX files, plain or compressed: two pieces, images and labels.

#include "services/common/dataset/idx.h"

#include <span>

#include "services/common/base/check.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

constexpr dataset::IdxLimits kLimits{.classes = 10, .max_bytes = 1 << 20};

std::string Idx(const std::vector<std::uint8_t>& dimensions, const std::string& elements) {
  std::string file{'\0', '\0', '\x08', static_cast<char>(dimensions.size())};
  for (const std::uint8_t dimension : dimensions) {
    file += {'\0', '\0', '\0', static_cast<char>(dimension)};
  }
  return file + elements;
}

std::string Compressed(const std::string& file) {
  return dataset::Gzip(std::span(reinterpret_cast<const std::uint8_t*>(file.data()), file.size()));
}

}  // namespace

std::vector<std::string> Seeds() {
  const std::string labels = Idx({2}, {'\x03', '\x09'});
  const std::string grey = Idx({2, 2, 3}, "pixels-of-12");
  const std::string coloured = Idx({2, 3, 1, 2}, "pixels-of-12");
  return {
      Join({grey, labels}), Join({coloured, labels}), Join({Compressed(grey), Compressed(labels)})};
}

bool Try(std::string_view input) {
  const std::vector<std::string> pieces = Split(input);
  if (pieces.size() < 2) {
    return false;
  }
  static ScratchFile images;
  static ScratchFile labels;
  images.Set(pieces[0]);
  labels.Set(pieces[1]);
  const dataset::IdxPaths paths{.images = images.path(), .labels = labels.path()};
  const auto verified = dataset::VerifyIdx(paths, kLimits);
  const auto set = dataset::ReadIdx(paths, kLimits);
  ADAMANT_CHECK(verified.ok() == set.ok(), "what is verified is what can be read");
  ADAMANT_CHECK(!set.ok() || set->images.size() == set->size() * set->example_bytes(),
                "an image lacks pixels");
  return set.ok();
}

}  // namespace adamant::fuzz
