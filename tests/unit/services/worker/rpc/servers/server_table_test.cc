#include "services/worker/rpc/servers/server_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace adamant::worker {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class ServerTableTest : public testing::Test {
 protected:
  /// Says when it is destroyed.
  struct Stream {
    Stream(std::vector<std::string>& log, std::string address)
        : events(log), name(std::move(address)) {}
    ~Stream() { events.push_back("close " + name); }

    std::vector<std::string>& events;
    const std::string name;
  };

  /// What an update does, in order.
  std::vector<std::string> Update(const std::vector<ServerAddress>& places) {
    events_.clear();
    table_.Update(
        places,
        [this](ServerSlot server) { events_.push_back("removed " + std::to_string(server)); },
        [this](const ServerAddress& place) {
          events_.push_back("open " + place.address);
          return std::make_unique<Stream>(events_, place.address);
        });
    return events_;
  }

  std::vector<std::string> events_;
  ServerTable<Stream> table_;
};

TEST_F(ServerTableTest, AStreamLastsAsLongAsItsServerStaysTheSameProcess) {
  EXPECT_THAT(Update({{0, "a", 1}, {1, "b", 1}}), ElementsAre("open a", "open b"));
  EXPECT_EQ(table_.Find(1)->name, "b");
  EXPECT_EQ(table_.Find(2), nullptr);
  EXPECT_THAT(Update({{1, "b", 1}, {0, "a", 1}}), IsEmpty());
  EXPECT_THAT(Update({{0, "a", 2}, {1, "b", 1}, {2, "c", 1}}),
              ElementsAre("close a", "removed 0", "open a", "open c"));
  EXPECT_THAT(Update({{0, "z", 2}, {2, "c", 1}}),
              ElementsAre("close a", "removed 0", "close b", "removed 1", "open z"));
}

TEST_F(ServerTableTest, AllStreamsAreVisitedAndClosedInOrder) {
  Update({{0, "a", 1}, {1, "b", 1}});
  std::vector<std::string> names;
  table_.ForEach([&](Stream& stream) { names.push_back(stream.name); });
  EXPECT_THAT(names, ElementsAre("a", "b"));
  events_.clear();
  table_.Clear();
  EXPECT_THAT(events_, ElementsAre("close a", "close b"));
  EXPECT_EQ(table_.Find(0), nullptr);
}

}  // namespace
}  // namespace adamant::worker
