#include "operator/kube_client/http/line_splitter.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace adamant::kube {
namespace {

using ::testing::ElementsAre;

TEST(LineSplitterTest, HoweverAStreamIsCutTheLinesAreTheSame) {
  const std::string stream = "one\ntwo\r\n\n\r\nthree\nrest";
  for (std::size_t first = 0; first <= stream.size(); ++first) {
    for (std::size_t second = first; second <= stream.size(); ++second) {
      std::vector<std::string> lines;
      const LineSplitter::OnLine keep = [&](std::string_view line) {
        lines.emplace_back(line);
        return true;
      };
      LineSplitter splitter(5);
      EXPECT_TRUE(splitter.Add(stream.substr(0, first), keep).value());
      EXPECT_TRUE(splitter.Add(stream.substr(first, second - first), keep).value());
      EXPECT_TRUE(splitter.Add(stream.substr(second), keep).value());
      EXPECT_THAT(lines, ElementsAre("one", "two", "three"));
    }
  }
}

TEST(LineSplitterTest, TheReaderEndsItWithinAPiece) {
  int lines = 0;
  LineSplitter splitter(100);
  EXPECT_FALSE(splitter.Add("a\nb\nc\n", [&](std::string_view) { return ++lines < 2; }).value());
  EXPECT_EQ(lines, 2);
}

TEST(LineSplitterTest, ALineAboveTheLimitIsRefusedAlsoInPieces) {
  const LineSplitter::OnLine keep = [](std::string_view) { return true; };
  LineSplitter whole(3);
  EXPECT_TRUE(whole.Add("abc\nabc\n", keep).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(whole.Add("abcd\n", keep).status()));
  LineSplitter pieces(3);
  EXPECT_TRUE(pieces.Add("ab", keep).ok());
  EXPECT_TRUE(pieces.Add("c", keep).ok());
  EXPECT_TRUE(absl::IsResourceExhausted(pieces.Add("d", keep).status()));
}

}  // namespace
}  // namespace adamant::kube
