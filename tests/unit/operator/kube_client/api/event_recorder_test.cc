#include "operator/kube_client/api/event_recorder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/fakes/fake_clock.h"
#include "tests/fakes/kube/fake_sleeper.h"
#include "tests/fakes/kube/memory_api_server.h"

namespace adamant::kube {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;
using Fault = MemoryApiServer::Fault;

Event Started(const std::string& name, const std::string& message = "all pods run") {
  return {.object = {"adamant.dev/v1", "TrainingJob", {"ns", name}, "uid-of-" + name},
          .warning = false,
          .reason = "Started",
          .message = message};
}

class EventRecorderTest : public ::testing::Test {
 protected:
  std::vector<Json> Events() { return *client_.List(kEvents, {}); }

  FakeClock clock_;
  FakeSleeper sleeper_{clock_};
  MemoryApiServer server_{clock_};
  Client client_{server_, clock_, sleeper_};
  EventRecorder recorder_{client_,
                          {.component = "adamant-operator", .instance = "pod-1", .max_queue = 40},
                          clock_,
                          sleeper_};
};

TEST_F(EventRecorderTest, AnEventSaysWhatHappenedToWhat) {
  Event event = Started("mnist");
  event.warning = true;
  recorder_.Record(event);
  recorder_.Step();
  const std::vector<Json> events = Events();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(KeyOf(events[0]).ns, "ns");
  EXPECT_EQ(StringAt(events[0], {"involvedObject", "kind"}), "TrainingJob");
  EXPECT_EQ(StringAt(events[0], {"involvedObject", "apiVersion"}), "adamant.dev/v1");
  EXPECT_EQ(StringAt(events[0], {"involvedObject", "uid"}), "uid-of-mnist");
  EXPECT_EQ(StringAt(events[0], {"type"}), "Warning");
  EXPECT_EQ(StringAt(events[0], {"reason"}), "Started");
  EXPECT_EQ(StringAt(events[0], {"message"}), "all pods run");
  EXPECT_EQ(StringAt(events[0], {"source", "component"}), "adamant-operator");
  EXPECT_EQ(IntAt(events[0], {"count"}), 1);
  EXPECT_EQ(StringAt(events[0], {"firstTimestamp"}), StringAt(events[0], {"lastTimestamp"}));
}

TEST_F(EventRecorderTest, TheSameAgainRaisesACount) {
  for (int i = 0; i < 3; ++i) {
    recorder_.Record(Started("mnist"));
    recorder_.Step();
    clock_.Advance(seconds(5));
  }
  recorder_.Record(Started("mnist", "another message"));
  recorder_.Record(Started("other"));
  recorder_.Step();
  const std::vector<Json> events = Events();
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(IntAt(events[0], {"count"}), 3);
  EXPECT_LT(StringAt(events[0], {"firstTimestamp"}), StringAt(events[0], {"lastTimestamp"}));
  EXPECT_EQ(IntAt(events[1], {"count"}), 1);
  EXPECT_EQ(IntAt(events[2], {"count"}), 1);
}

TEST_F(EventRecorderTest, ALongPauseBeginsANewEvent) {
  recorder_.Record(Started("mnist"));
  recorder_.Step();
  clock_.Advance(minutes(10));
  recorder_.Record(Started("mnist"));
  recorder_.Step();
  EXPECT_EQ(Events().size(), 2u);
}

TEST_F(EventRecorderTest, AnEventThatTheApiHasForgottenIsWrittenAgain) {
  recorder_.Record(Started("mnist"));
  recorder_.Step();
  ASSERT_TRUE(client_.Delete(kEvents, KeyOf(Events()[0])).ok());
  recorder_.Record(Started("mnist"));
  recorder_.Step();
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(IntAt(Events()[0], {"count"}), 2);
}

TEST_F(EventRecorderTest, AnObjectThatCausesTooManyIsNotHeardForAWhile) {
  for (int i = 0; i < 30; ++i) {
    recorder_.Record(Started("noisy", std::to_string(i)));
  }
  recorder_.Record(Started("quiet"));
  recorder_.Step();
  EXPECT_EQ(Events().size(), 26u);
  EXPECT_EQ(recorder_.dropped(), 5u);
  clock_.Advance(minutes(5));
  recorder_.Record(Started("noisy", "later"));
  recorder_.Step();
  EXPECT_EQ(Events().size(), 27u);
}

TEST_F(EventRecorderTest, ManyOfOneKindDoNotSilenceAnother) {
  const auto of = [](const std::string& reason, const std::string& message) {
    Event event = Started("mnist", message);
    event.reason = reason;
    return event;
  };
  for (int epoch = 0; epoch < 100; ++epoch) {
    recorder_.Record(of("EpochOpened", "epoch " + std::to_string(epoch)));
    recorder_.Record(of("Phase", "Evaluating"));
    recorder_.Record(of("Phase", "Running"));
    recorder_.Step();
  }
  recorder_.Record(of("Lost", "worker-1 was killed by signal 9"));
  recorder_.Record(of("Phase", "Failed"));
  recorder_.Step();
  const std::vector<Json> events = Events();
  const auto told = [&](const std::string& message) {
    return std::any_of(events.begin(), events.end(), [&](const Json& event) {
      return StringAt(event, {"message"}) == message;
    });
  };
  EXPECT_TRUE(told("worker-1 was killed by signal 9"));
  EXPECT_TRUE(told("Failed"));
  EXPECT_TRUE(told("epoch 24"));
  EXPECT_FALSE(told("epoch 25"));
}

TEST_F(EventRecorderTest, AFullQueueDropsAndNeverWaits) {
  for (int i = 0; i < 50; ++i) {
    recorder_.Record(Started("job-" + std::to_string(i)));
  }
  EXPECT_EQ(recorder_.dropped(), 10u);
  recorder_.Step();
  EXPECT_EQ(Events().size(), 40u);
}

TEST_F(EventRecorderTest, IsPatientWithAnApiThatIsAway) {
  server_.SetFaults([](const HttpRequest&) { return Fault::kRefuse; });
  recorder_.Record(Started("mnist"));
  EXPECT_GE(recorder_.Step(), seconds(1));
  EXPECT_GE(recorder_.Step(), seconds(1));
  server_.SetFaults(nullptr);
  EXPECT_LT(recorder_.Step(), seconds(1));
  EXPECT_EQ(Events().size(), 1u);
  EXPECT_EQ(recorder_.dropped(), 0u);
}

TEST_F(EventRecorderTest, GivesAnEventUpInTheEnd) {
  server_.SetFaults([](const HttpRequest&) { return Fault::kRefuse; });
  recorder_.Record(Started("mnist"));
  for (int i = 0; i < 12; ++i) {
    recorder_.Step();
  }
  EXPECT_EQ(recorder_.dropped(), 1u);
}

TEST_F(EventRecorderTest, AnAnswerThatIsLostMakesNoSecondEvent) {
  bool lose = true;
  server_.SetFaults([&lose](const HttpRequest&) {
    return std::exchange(lose, false) ? Fault::kLoseAnswer : Fault::kNone;
  });
  recorder_.Record(Started("mnist"));
  recorder_.Step();
  recorder_.Step();
  EXPECT_EQ(Events().size(), 1u);
  EXPECT_EQ(recorder_.dropped(), 0u);
}

TEST_F(EventRecorderTest, WhatConcernsTheWholeClusterIsInTheDefaultNamespace) {
  Event event = Started("node-1");
  event.object.key.ns = "";
  recorder_.Record(event);
  recorder_.Step();
  ASSERT_EQ(Events().size(), 1u);
  EXPECT_EQ(KeyOf(Events()[0]).ns, "default");
}

TEST(EventCorrelatorTest, RemembersABoundedNumberOfEvents) {
  FakeClock clock;
  EventCorrelator correlator(clock);
  const std::size_t more = EventCorrelator::kMaxEntries + 1;
  for (std::size_t i = 0; i < more; ++i) {
    clock.Advance(std::chrono::milliseconds(1));
    EXPECT_EQ(correlator.Observe(Started(std::to_string(i)))->count, 1);
  }
  // The oldest is forgotten, the newest is not.
  EXPECT_EQ(correlator.Observe(Started(std::to_string(more - 1)))->count, 2);
  EXPECT_EQ(correlator.Observe(Started("0"))->count, 1);
}

}  // namespace
}  // namespace adamant::kube
