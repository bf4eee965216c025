#include "operator/kube_client/api/event_lines.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace adamant::kube {
namespace {

const std::string kWhat = "watch of /api/v1/pods";

TEST(EventLinesTest, GivesEventsUntilTheReaderHasEnough) {
  std::vector<WatchEventType> types;
  const WatchReader reader = [&types](WatchEventType type, const Json& object) {
    types.push_back(type);
    return object.value("name", "") != "last";
  };
  EventLines lines(kWhat, reader);
  EXPECT_TRUE(lines.Take(R"({"type":"ADDED","object":{}})"));
  EXPECT_TRUE(lines.Take(R"({"type":"MODIFIED","object":{}})"));
  EXPECT_TRUE(lines.Take(R"({"type":"BOOKMARK","object":{}})"));
  EXPECT_FALSE(lines.Take(R"({"type":"DELETED","object":{"name":"last"}})"));
  EXPECT_TRUE(lines.status().ok());
  EXPECT_EQ(types,
            (std::vector{WatchEventType::kAdded,
                         WatchEventType::kModified,
                         WatchEventType::kBookmark,
                         WatchEventType::kDeleted}));
}

TEST(EventLinesTest, ALineThatIsNoEventEndsItAndNamesTheWatch) {
  const WatchReader reader = [](WatchEventType, const Json&) { return true; };
  for (const char* line : {"<html>", "{}", R"({"type":"ADDED","object":3})"}) {
    EventLines lines(kWhat, reader);
    EXPECT_FALSE(lines.Take(line));
    EXPECT_TRUE(absl::IsDataLoss(lines.status())) << line;
    EXPECT_EQ(lines.status().message().find(kWhat), 0u) << lines.status();
  }
}

TEST(EventLinesTest, AnErrorEventEndsItWithItsCode) {
  const WatchReader reader = [](WatchEventType, const Json&) { return true; };
  EventLines lines(kWhat, reader);
  EXPECT_FALSE(lines.Take(R"({"type":"ERROR","object":{"code":410,"reason":"Expired"}})"));
  EXPECT_TRUE(absl::IsOutOfRange(lines.status()));
}

}  // namespace
}  // namespace adamant::kube
