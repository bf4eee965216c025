#include "services/common/rpc/tls/call_expiry.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>

namespace adamant::rpc {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::system_clock;

TEST(CallExpiryTest, CallsEndAtTheirTimeAndNotBefore) {
  CallExpiry expiry;
  const auto time = system_clock::now() + milliseconds(50);
  std::promise<system_clock::time_point> ended;
  std::atomic<int> late = 0;
  const auto later = expiry.Watch(time + hours(1), [&] { ++late; });
  const auto place = expiry.Watch(time, [&] { ended.set_value(system_clock::now()); });
  EXPECT_GE(ended.get_future().get(), time);
  EXPECT_EQ(late, 0);
}

TEST(CallExpiryTest, ATimeThatIsPastIsNow) {
  CallExpiry expiry;
  std::promise<void> ended;
  const auto place = expiry.Watch(system_clock::now() - hours(1), [&] { ended.set_value(); });
  ended.get_future().wait();
}

TEST(CallExpiryTest, CallsThatAreOverAreLeftAlone) {
  CallExpiry expiry;
  const auto time = system_clock::now() + milliseconds(20);
  std::atomic<int> calls = 0;
  expiry.Watch(time, [&] { ++calls; }).reset();
  std::promise<void> ended;
  const auto place = expiry.Watch(time + milliseconds(20), [&] { ended.set_value(); });
  ended.get_future().wait();
  EXPECT_EQ(calls, 0);
}

}  // namespace
}  // namespace adamant::rpc
