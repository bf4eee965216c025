#include "operator/kube/schema/message_json.h"

#include <gmock/gmock.h>
#include <google/protobuf/util/message_differencer.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>

#include "operator/kube/schema/job_object.h"
#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {
namespace {

using google::protobuf::util::MessageDifferencer;
using Json = nlohmann::json;

v1::ShardMap SomeMap() {
  v1::ShardMap map;
  map.set_job("mnist");
  map.set_job_uid("0a1b2c3d-0000-1111-2222-333344445555");
  map.set_term(7);
  map.set_first(0);
  map.set_count(2);
  v1::Configuration& bucket = *map.add_buckets();
  bucket.set_epoch(3);
  bucket.set_generation(1);
  bucket.mutable_primary()->set_incarnation(4);
  *bucket.add_members() = bucket.primary();
  bucket.add_members()->set_slot(2);
  bucket.set_created(true);
  bucket.mutable_heir()->set_slot(2);
  map.add_buckets()->set_restored_snapshot(9);
  return map;
}

TEST(MessageJsonTest, AShardMapReadsBackTheSame) {
  const v1::ShardMap map = SomeMap();
  const Json object = ShardMapObject(map, "mnist-0", "team-a");
  EXPECT_EQ(object["apiVersion"], "adamant.dev/v1alpha1");
  EXPECT_EQ(object["metadata"]["name"], "mnist-0");
  EXPECT_EQ(object["metadata"]["namespace"], "team-a");
  v1::ShardMap again;
  ASSERT_TRUE(ReadShardMap(object, again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(map, again)) << again.ShortDebugString();
}

TEST(MessageJsonTest, NumbersThatCannotBeAbsentAreWrittenAlsoWhenTheyAreNull) {
  const Json object = ShardMapObject(SomeMap(), "mnist-0", "team-a");
  EXPECT_EQ(object["buckets"][0]["primary"], Json({{"slot", 0}, {"incarnation", 4}}));
  EXPECT_FALSE(object["buckets"][0].contains("learner"));
}

TEST(MessageJsonTest, ANumberThatIsNotFiniteIsLeftOut) {
  v1::TrainingJobStatus status;
  status.set_phase(v1::TrainingJobStatus::PHASE_RUNNING);
  for (const double value : {std::nan(""), HUGE_VAL, -HUGE_VAL}) {
    status.set_training_loss(value);
    const Json object = MessageJson(status);
    EXPECT_FALSE(object.contains("trainingLoss")) << object;
    EXPECT_EQ(object["phase"], "Running");
  }
  status.set_training_loss(0.5);
  EXPECT_EQ(MessageJson(status)["trainingLoss"], 0.5);
}

TEST(MessageJsonTest, AStatusReadsBackTheSame) {
  v1::TrainingJobStatus status;
  status.set_phase(v1::TrainingJobStatus::PHASE_RUNNING);
  status.set_accuracy(0.9375);
  status.set_message("");
  status.mutable_active()->set_seconds(90);
  status.mutable_roles()->mutable_worker()->set_selector("adamant.dev/job=mnist,role=worker");
  v1::Condition& condition = *status.add_conditions();
  condition.set_type("Valid");
  condition.set_status(v1::Condition::STATUS_TRUE);
  condition.set_last_transition_time("2024-02-29T12:00:00Z");
  const Json json = MessageJson(status);
  EXPECT_EQ(json["phase"], "Running");
  EXPECT_EQ(json["active"], "1m30s");
  EXPECT_EQ(json["conditions"][0]["status"], "True");
  v1::TrainingJobStatus again;
  ASSERT_TRUE(ReadStatus({{"status", json}}, again).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(status, again)) << again.ShortDebugString();
}

TEST(MessageJsonTest, AnObjectWithoutStatusHasAnEmptyOne) {
  v1::TrainingJobStatus status;
  EXPECT_TRUE(ReadStatus(Json::object(), status).ok());
  EXPECT_TRUE(MessageDifferencer::Equals(status, v1::TrainingJobStatus()));
}

TEST(MessageJsonTest, WhatIsWrongIsNamedAndTheRestIsRead) {
  Json object = ShardMapObject(SomeMap(), "mnist-0", "team-a");
  object["buckets"][0]["primary"]["slot"] = -1;
  object["buckets"][1]["generation"] = "many";
  object["later"] = 1;
  v1::ShardMap map;
  const absl::Status status = ReadShardMap(object, map);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("buckets[0].primary.slot: -1 "));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("buckets[1].generation: "));
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("later: unknown field"));
  EXPECT_EQ(map.term(), 7);
}

TEST(MessageJsonTest, SlotsBeyond32BitsAreRefused) {
  Json object = ShardMapObject(SomeMap(), "mnist-0", "team-a");
  object["buckets"][0]["primary"]["slot"] = std::int64_t{1} << 32;
  v1::ShardMap map;
  EXPECT_FALSE(ReadShardMap(object, map).ok());
}

TEST(MessageJsonTest, ObjectsOfAnotherTypeAreRefused) {
  for (const Json& json : {Json::array(), Json("text"), Json(3), Json()}) {
    v1::TrainingJobStatus status;
    EXPECT_FALSE(ReadMessage(json, status).ok()) << json;
  }
}

}  // namespace
}  // namespace adamant::kube
