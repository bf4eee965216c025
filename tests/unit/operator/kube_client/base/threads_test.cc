// The threads of informers, elections, recorders and queues, against an API in memory whose watches
// stay open.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "operator/kube_client/api/event_recorder.h"
#include "operator/kube_client/api/leader_election.h"
#include "operator/kube_client/base/sleeper.h"
#include "operator/kube_client/base/work_queue.h"
#include "operator/kube_client/cache/informer.h"
#include "services/common/base/mutex.h"
#include "tests/fakes/kube/memory_api_server.h"

namespace adamant::kube {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kTimeout = seconds(60);

// Something that a test waits for.
template <class T>
class Awaited {
 public:
  void Set(T value) {
    const MutexLock lock(mutex_);
    value_ = std::move(value);
    changed_.NotifyAll();
  }

  // Waits until it is `wanted`.
  bool Become(const T& wanted) {
    const auto end = std::chrono::steady_clock::now() + kTimeout;
    const MutexLock lock(mutex_);
    while (!(value_ == wanted)) {
      if (std::chrono::steady_clock::now() >= end) {
        return false;
      }
      changed_.WaitFor(mutex_, milliseconds(100));
    }
    return true;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  T value_ ABSL_GUARDED_BY(mutex_){};
};

Json Pod(int number) {
  return {{"metadata",
           {{"namespace", "ns"},
            {"name", "pod-" + std::to_string(number)},
            {"labels", {{"job", number % 2 == 0 ? "even" : "odd"}}}}}};
}

class ThreadsTest : public ::testing::Test {
 protected:
  SystemClock clock_;
  SystemSleeper sleeper_;
  MemoryApiServer server_{clock_, /*live=*/true};
  Client client_{server_, clock_, sleeper_, {.rate = 1e6, .burst = 1e6}};
};

TEST_F(ThreadsTest, AnInformerFollowsManyWritersThroughCuts) {
  constexpr int kPods = 60;
  Informer<std::string> informer(
      client_,
      kube::kPods,
      {},
      [](const Json& pod) {
        return std::make_shared<std::string>(StringAt(pod, {"metadata", "labels", "job"}));
      },
      clock_,
      sleeper_);
  informer.AddIndex("job", [](const std::string& job) { return std::vector{job}; });
  Awaited<int> held;
  int count = 0;
  informer.AddHandler([&](const Informer<std::string>::Change& change) {
    count += change.before == nullptr ? 1 : change.after == nullptr ? -1 : 0;
    held.Set(count);
  });
  informer.Start();
  EXPECT_TRUE(informer.WaitUntilSynced(kTimeout));
  {
    std::vector<std::jthread> threads;
    for (int part = 0; part < 3; ++part) {
      threads.emplace_back([this, part] {
        for (int i = part; i < kPods; i += 3) {
          EXPECT_TRUE(client_.Create(kube::kPods, Pod(i)).ok());
        }
      });
    }
    threads.emplace_back([&informer] {
      for (int i = 0; i < 200; ++i) {
        EXPECT_LE(informer.ByIndex("job", "odd").size(), informer.All().size() + kPods);
      }
    });
    server_.CutWatches();
  }
  EXPECT_TRUE(held.Become(kPods));
  EXPECT_EQ(informer.ByIndex("job", "even").size(), kPods / 2u);
  ASSERT_TRUE(
      client_.DeleteCollection(kube::kPods, {.ns = "ns", .label_selector = "job=odd"}).ok());
  EXPECT_TRUE(held.Become(kPods / 2));
  informer.Stop();
  informer.Stop();
}

TEST_F(ThreadsTest, WorkersShareAQueueWithoutSharingAKey) {
  constexpr int kKeys = 8;
  constexpr int kAdds = 2000;
  WorkQueue queue(clock_, {.retry_rate = 1e6, .retry_burst = 1e6});
  std::array<std::atomic<int>, kKeys> busy{};
  std::array<std::atomic<int>, kKeys> added{};
  std::array<std::atomic<int>, kKeys> seen{};
  std::atomic<int> worked = 0;
  std::vector<std::jthread> workers;
  for (int i = 0; i < 4; ++i) {
    workers.emplace_back([&] {
      while (const auto key = queue.Take()) {
        const auto index = static_cast<std::size_t>(std::stoi(*key));
        EXPECT_EQ(busy[index].fetch_add(1), 0);
        seen[index] = added[index].load();
        if (worked.fetch_add(1) % 16 == 0) {
          queue.Retry(*key);
        }
        busy[index].fetch_sub(1);
        queue.Done(*key);
      }
    });
  }
  for (int i = 0; i < kAdds; ++i) {
    const int key = i % kKeys;
    ++added[static_cast<std::size_t>(key)];
    queue.Add(std::to_string(key));
    queue.AddAfter(std::to_string(key), milliseconds(1));
  }
  EXPECT_TRUE(queue.WaitUntilIdle(kTimeout));
  queue.ShutDown();
  workers.clear();
  // What was added last was worked on after that.
  for (std::size_t key = 0; key < kKeys; ++key) {
    EXPECT_EQ(seen[key], kAdds / kKeys);
  }
}

TEST_F(ThreadsTest, AWorkerIsWokenForAKeyWhoseTimeComesEarlier) {
  WorkQueue queue(clock_);
  queue.AddAfter("late", std::chrono::hours(1));
  std::jthread worker([&queue] { EXPECT_EQ(queue.Take(), "soon"); });
  queue.AddAfter("soon", milliseconds(20));
  worker.join();
}

TEST_F(ThreadsTest, LeadershipPassesOnWhenTheLeaderStops) {
  Awaited<std::string> leader;
  const auto candidate = [&](const std::string& identity) {
    return std::make_unique<LeaderElection>(
        client_,
        LeaderElectionOptions{.lease = {"ns", "lease"},
                              .identity = identity,
                              .renew_interval = milliseconds(10),
                              .poll_interval = milliseconds(10)},
        LeaderCallbacks{.started = [&leader, identity](std::int64_t) { leader.Set(identity); },
                        .lost = [] {},
                        .stopped = [] {},
                        .new_leader = [](const std::string&) {}},
        clock_,
        sleeper_);
  };
  const auto first = candidate("first");
  const auto second = candidate("second");
  first->Start();
  EXPECT_TRUE(leader.Become("first"));
  second->Start();
  first->Stop();
  EXPECT_TRUE(leader.Become("second"));
}

TEST_F(ThreadsTest, EventsOfManyThreadsAreWritten) {
  EventRecorder recorder(client_, {.component = "test", .instance = "one"}, clock_, sleeper_);
  Awaited<int> events;
  int count = 0;
  Informer<int> informer(
      client_, kEvents, {}, [](const Json&) { return std::make_shared<int>(); }, clock_, sleeper_);
  informer.AddHandler([&](const Informer<int>::Change& /*change*/) { events.Set(++count); });
  informer.Start();
  recorder.Start();
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&recorder, i] {
      for (int j = 0; j < 10; ++j) {
        recorder.Record({.object = {"v1", "Pod", {"ns", std::to_string(i)}, "uid"},
                         .warning = false,
                         .reason = "Test",
                         .message = std::to_string(j)});
      }
    });
  }
  EXPECT_TRUE(events.Become(40));
  EXPECT_EQ(recorder.dropped(), 0u);
}

TEST_F(ThreadsTest, StoppingEndsALongSleep) {
  const Cancellation cancellation;
  Awaited<bool> slept;
  StepThread thread(
      [&slept]() -> Clock::Duration {
        slept.Set(true);
        return std::chrono::hours(1);
      },
      cancellation,
      sleeper_);
  EXPECT_TRUE(slept.Become(true));
  thread.Stop();
  EXPECT_FALSE(sleeper_.Sleep(std::chrono::hours(1), cancellation));
}

}  // namespace
}  // namespace adamant::kube
