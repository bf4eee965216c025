#include "operator/cli/console/status_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/ids.h"

namespace adamant::cli {
namespace {

using testing::HasSubstr;
using testing::Not;

v1::ServerId ServerId(std::uint32_t slot, Incarnation incarnation) {
  v1::ServerId server_id;
  server_id.set_slot(slot);
  server_id.set_incarnation(incarnation);
  return server_id;
}

v1::BucketStatus& AddBucket(v1::JobStatus& status, const std::string& state) {
  const int index = status.buckets_size();
  v1::BucketStatus& bucket = *status.add_buckets();
  bucket.set_bucket(static_cast<std::uint32_t>(index));
  bucket.set_state(state);
  ++(*status.mutable_bucket_summary()->mutable_states())[state];
  status.mutable_bucket_summary()->set_largest_epoch(1);
  v1::Configuration& record = *bucket.mutable_record();
  record.set_epoch(1);
  *record.mutable_primary() = ServerId(0, 1);
  *record.add_members() = ServerId(0, 1);
  *record.add_members() = ServerId(1, 1);
  *record.add_members() = ServerId(2, 1);
  bucket.set_committed(1200);
  return bucket;
}

/// A job that runs, on one worker and one parameter server.
v1::JobStatus RunningJob() {
  v1::JobStatus status;
  status.set_name("digits");
  status.set_phase("Running");
  status.set_epoch(2);
  status.set_epochs(5);
  status.set_counted_examples(12800);
  status.set_total_examples(60000);
  status.set_examples_per_second(3120.4);
  status.set_training_loss(0.12345);
  status.set_accuracy(0.9712);
  status.set_restarts(1);
  v1::MemberStatus& server = *status.add_members();
  server.set_role(v1::PARAMETER_SERVER);
  server.set_slot(1);
  server.set_incarnation(2);
  server.set_state("Running");
  server.set_metrics_address("127.0.0.1:4242");
  server.set_buckets(22);
  server.set_copies(64);
  server.set_oldest_unflushed_seconds(0.42);
  v1::MemberStatus& worker = *status.add_members();
  worker.set_role(v1::WORKER);
  worker.set_incarnation(1);
  worker.set_state("Starting");
  return status;
}

v1::FailoverStatus& AddFailover(v1::JobStatus& status) {
  v1::FailoverStatus& failover = *status.mutable_last_failover();
  failover.set_bucket(7);
  failover.set_epoch(3);
  failover.mutable_times()->set_detect_seconds(3.95);
  failover.mutable_times()->set_replace_seconds(0.052);
  failover.mutable_times()->set_reconcile_seconds(0.0204);
  failover.set_catch_up_seconds(1.41);
  failover.set_seconds_ago(72);
  failover.set_failovers(4);
  return failover;
}

TEST(StatusTextTest, AJobWithoutReplicationShowsProgressAndMembers) {
  EXPECT_EQ(StatusText(RunningJob(), /*live=*/true),
            "digits: Running\n"
            "epoch 2 of 5, top-1 97.12%, 1 restart\n"
            "12800 of 60000 examples, loss 0.1235, 3120 examples/s\n"
            "  parameter-server-1   Running    incarnation 2  http://127.0.0.1:4242/metrics  "
            "primary of 22 buckets, copies of 64, oldest unflushed 420ms\n"
            "  worker-0             Starting   incarnation 1\n");
}

TEST(StatusTextTest, WhatIsNotKnownIsLeftOut) {
  v1::JobStatus status;
  status.set_name("digits");
  status.set_phase("Starting");
  EXPECT_EQ(StatusText(status, /*live=*/true), "digits: Starting\n0 restarts\n0 examples/s\n");
  status.set_epoch(1);
  status.set_epochs(5);
  EXPECT_EQ(StatusText(status, /*live=*/false), "digits: Starting\nepoch 1 of 5, 0 restarts\n");
  const auto json = nlohmann::json::parse(StatusJson("now", status, /*live=*/false));
  for (const char* field :
       {"training_loss", "top1", "batches_of_others", "examples", "examples_total"}) {
    EXPECT_TRUE(json.at(field).is_null()) << field;
  }
  status.set_total_examples(1000);
  EXPECT_EQ(nlohmann::json::parse(StatusJson("now", status, /*live=*/true))["examples"], 0);
}

TEST(StatusTextTest, AReplicatedJobShowsItsBucketsLastFailoverAndCheckpoint) {
  v1::JobStatus status = RunningJob();
  status.clear_members();
  AddBucket(status, "Degraded");
  AddBucket(status, "Ready");
  AddBucket(status, "Ready");
  status.mutable_bucket_summary()->set_largest_lag(4);
  AddFailover(status);
  status.set_checkpoint(9);
  status.set_checkpoint_held_seconds(0.042);
  EXPECT_EQ(StatusText(status, /*live=*/true),
            "digits: Running\n"
            "epoch 2 of 5, top-1 97.12%, 1 restart\n"
            "12800 of 60000 examples, loss 0.1235, 3120 examples/s\n"
            "buckets      3: 2 Ready, 1 Degraded; versions up to 1, lag at most 4\n"
            "failover     bucket 7, 1m12s ago: detect 4.0s, replace 52ms, reconcile 20ms, catch up "
            "1.4s; 4 times a bucket was taken over\n"
            "checkpoint   9, pushes held for 42ms\n");
}

TEST(StatusTextTest, ACopyThatIsStillBeingMadeIsSaidToCatchUp) {
  v1::JobStatus status = RunningJob();
  AddFailover(status).set_catch_up_seconds(0);
  EXPECT_THAT(StatusText(status, /*live=*/true), HasSubstr("reconcile 20ms, catching up; 4"));
}

TEST(StatusTextTest, WhatWasRolledBackIsToldAlsoAfterTheEnd) {
  v1::JobStatus status = RunningJob();
  AddBucket(status, "Ready");
  status.mutable_bucket_summary()->set_rolled_back(18);
  status.mutable_bucket_summary()->set_rolled_back_buckets(2);
  status.mutable_last_failover()->set_restores(2);
  for (const bool live : {true, false}) {
    EXPECT_THAT(
        StatusText(status, live),
        HasSubstr("rolled back  18 updates in 2 buckets; 2 buckets read from disk over the "
                  "job\n"
                  "lost         none that a worker knows of; what had ended with a worker is "
                  "not counted\n"));
  }
  EXPECT_THAT(StatusText(status, /*live=*/true), Not(HasSubstr("failover ")));
}

TEST(StatusTextTest, WhatNoWorkerCouldSendAgainIsToldBesideWhatWasRolledBack) {
  v1::JobStatus status = RunningJob();
  status.mutable_last_failover()->set_restores(2);
  status.set_updates_lost(980);
  EXPECT_THAT(StatusText(status, /*live=*/false),
              HasSubstr("restored     2 buckets read from disk over the job\n"
                        "lost         at least 980 updates, which no worker could send again\n"));
  status.mutable_bucket_summary()->set_rolled_back(18);
  status.mutable_bucket_summary()->set_rolled_back_buckets(2);
  EXPECT_THAT(StatusText(status, /*live=*/false),
              HasSubstr("rolled back  18 updates in 2 buckets; 2 buckets read from disk over the "
                        "job\n"
                        "lost         at least 980 updates, which no worker could send again\n"));
  EXPECT_EQ(nlohmann::json::parse(StatusJson("now", status, /*live=*/false))["updates_lost"], 980);
}

TEST(StatusTextTest, WhatWorkersHaveYetToSayIsNotCalledNone) {
  v1::JobStatus status = RunningJob();
  status.mutable_bucket_summary()->set_rolled_back(18);
  status.set_updates_awaited(18);
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("lost         not known yet: whether 18 updates are sent again\n"));
  EXPECT_EQ(nlohmann::json::parse(StatusJson("now", status, /*live=*/true))["updates_awaited"], 18);
}

TEST(StatusTextTest, OfAProcessThatNeverBeganOnlyThatIsShown) {
  v1::JobStatus status = RunningJob();
  status.mutable_members(0)->set_incarnation(0);
  status.mutable_members(0)->set_state("Waiting");
  EXPECT_THAT(StatusText(status, /*live=*/true), HasSubstr("  parameter-server-1   Waiting\n"));
}

TEST(StatusTextTest, BucketsThatCameBackWholeAreNotCalledRolledBack) {
  v1::JobStatus status = RunningJob();
  status.mutable_last_failover()->set_restores(64);
  const std::string text = StatusText(status, /*live=*/true);
  EXPECT_THAT(text,
              HasSubstr("restored     64 buckets read from disk over the job, as each time that it "
                        "goes on; no update is known to be lost\n"));
  status.mutable_last_failover()->set_restores(1);
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("restored     1 bucket read from disk over the job, as each time"));
  EXPECT_THAT(text, Not(HasSubstr("rolled back")));
}

TEST(StatusTextTest, OfALastFailoverThatIsNotKnownOnlyTheCountIsShown) {
  v1::JobStatus status = RunningJob();
  status.mutable_last_failover()->set_failovers(3);
  EXPECT_THAT(StatusText(status, /*live=*/false),
              HasSubstr("failover     3 times a bucket was taken over\n"));
}

TEST(StatusTextTest, ALossThatIsNotKnownIsLeftOut) {
  v1::JobStatus status = RunningJob();
  status.set_training_loss(0);
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("12800 of 60000 examples, 3120 examples/s\n"));
}

TEST(StatusTextTest, ARunThatWasStoppedCanBeResumed) {
  EXPECT_EQ(RunPhase("Suspended", /*live=*/false), "Stopped, can be resumed");
  EXPECT_EQ(RunPhase("Suspended", /*live=*/true), "Stopping");
  EXPECT_EQ(RunPhase("Failed", /*live=*/false), "Failed");
}

TEST(StatusTextTest, AnAttemptSaysWhyThereIsOneAndWhatItCost) {
  v1::JobStatus status = RunningJob();
  status.set_attempt(1);
  status.set_rate_factor(1);
  EXPECT_THAT(StatusText(status, /*live=*/true), Not(HasSubstr("attempt")));
  status.set_divergence("all 60 units of layer relu1 are dead");
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("\nattempt 1: all 60 units of layer relu1 are dead\n"));
  status.clear_divergence();
  status.set_attempt(2);
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("\nattempt 2, as parameters were lost\n"));
  status.set_divergence("all 60 units of layer relu1 are dead");
  status.set_attempt(2);
  status.set_rate_factor(0.5);
  status.set_undone_updates(1234);
  status.set_undone_examples(56789);
  for (const bool live : {true, false}) {
    EXPECT_THAT(
        StatusText(status, live),
        HasSubstr("\nattempt 2, learning rates x 0.5, after: all 60 units of layer relu1 are "
                  "dead; 1234 updates (56789 examples) undone\n"));
  }
}

TEST(StatusTextTest, StalenessIsShownWhereThereIsAny) {
  v1::JobStatus status = RunningJob();
  EXPECT_THAT(StatusText(status, /*live=*/true), Not(HasSubstr("staleness")));
  status.set_batches_of_others(2.54);
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("staleness    2.5 batches of other workers\n"));
}

TEST(StatusTextTest, WhatAProcessCannotDoIsSaid) {
  v1::JobStatus status = RunningJob();
  status.mutable_members(0)->set_alarm("disk full: no room in data/");
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("alarm        parameter-server-1: disk full: no room in data/\n"));
}

TEST(StatusTextTest, WhoIsSilentForLongerThanTheGraceIsSaid) {
  v1::JobStatus status = RunningJob();
  status.mutable_members(0)->set_silent_seconds(3.9);
  EXPECT_THAT(StatusText(status, /*live=*/true), Not(HasSubstr("silent")));
  status.mutable_members(0)->set_silent_seconds(7.25);
  EXPECT_THAT(StatusText(status, /*live=*/true),
              HasSubstr("incarnation 2  silent for 7.2s  http://127.0.0.1:4242/metrics"));
}

TEST(StatusTextTest, AnEndedJobShowsNeitherProgressNorMembers) {
  v1::JobStatus status = RunningJob();
  status.set_phase("Failed");
  status.set_message("the loss is not a number");
  AddBucket(status, "Ready");
  EXPECT_EQ(StatusText(status, /*live=*/false),
            "digits: Failed\n"
            "epoch 2 of 5, top-1 97.12%, 1 restart\n"
            "the loss is not a number\n");
}

TEST(BucketTableTest, HasALineForEachBucketWithItsColumnsAligned) {
  v1::JobStatus status;
  AddBucket(status, "Ready");
  v1::BucketStatus& degraded = AddBucket(status, "Degraded");
  degraded.mutable_record()->set_epoch(12);
  degraded.mutable_record()->mutable_members()->RemoveLast();
  *degraded.mutable_record()->mutable_learner() = ServerId(2, 3);
  degraded.set_lag(15);
  v1::BucketStatus& restoring = AddBucket(status, "Restoring");
  restoring.mutable_record()->clear_primary();
  restoring.mutable_record()->clear_members();
  restoring.mutable_record()->set_generation(1);
  restoring.set_committed(0);
  restoring.set_rolled_back(31);
  EXPECT_EQ(
      BucketTable(status),
      "bucket  state      version  generation  primary  members       committed  lag  rolled "
      "back\n"
      "     0  Ready            1           0  0.1      0.1 1.1 2.1        1200    0            0\n"
      "     1  Degraded        12           0  0.1      0.1 1.1 +2.3       1200   15            0\n"
      "     2  Restoring        1           1  -                              0    0           "
      "31\n");
}

TEST(BucketTableTest, SaysHowManyBucketsAreNotShown) {
  v1::JobStatus status;
  AddBucket(status, "Degraded").set_bucket(70);
  AddBucket(status, "Ready").set_bucket(2);
  (*status.mutable_bucket_summary()->mutable_states())["Ready"] += 65534;
  const std::string table = BucketTable(status);
  EXPECT_LT(table.find("     2  Ready"), table.find("    70  Degraded"));
  EXPECT_THAT(table, HasSubstr("and 65534 more; those that are not Ready are shown first\n"));
}

TEST(BucketTableTest, IsEmptyWithoutBuckets) { EXPECT_EQ(BucketTable(RunningJob()), ""); }

TEST(StatusJsonTest, HoldsEverything) {
  v1::JobStatus status = RunningJob();
  AddBucket(status, "Ready").set_rolled_back(17);
  *status.mutable_buckets(0)->mutable_record()->mutable_heir() = ServerId(1, 1);
  AddFailover(status).set_restores(1);
  status.set_checkpoint(9);
  status.set_attempt(2);
  status.set_rate_factor(0.5);
  status.set_divergence("the loss");
  status.set_undone_updates(3);
  status.set_undone_examples(4);
  status.set_batches_of_others(1.5);
  const auto json = nlohmann::json::parse(StatusJson("now", status, /*live=*/true));
  EXPECT_EQ(json["time"], "now");
  EXPECT_EQ(json["event"], "status");
  EXPECT_EQ(json["live"], true);
  EXPECT_EQ(json["phase"], "Running");
  EXPECT_EQ(json["checkpoint"], 9);
  EXPECT_EQ(json["attempt"], 2);
  EXPECT_EQ(json["rate_factor"], 0.5);
  EXPECT_EQ(json["divergence"], "the loss");
  EXPECT_EQ(json["undone_updates"], 3);
  EXPECT_EQ(json["undone_examples"], 4);
  EXPECT_EQ(json["batches_of_others"], 1.5);
  EXPECT_EQ(json["last_failover"],
            nlohmann::json::parse(R"({"bucket": 7, "epoch": 3, "detect_seconds": 3.95,
                "replace_seconds": 0.052, "reconcile_seconds": 0.0204, "catch_up_seconds": 1.41,
                "seconds_ago": 72.0, "failovers": 4, "restores": 1})"));
  EXPECT_EQ(json["members"],
            nlohmann::json::parse(R"([{"name": "parameter-server-1", "state": "Running",
                "start": 2, "metrics_address": "127.0.0.1:4242", "alarm": "", "silent_seconds": 0.0,
                "primaries": 22, "copies": 64,
                "oldest_unflushed_seconds": 0.42},
                {"name": "worker-0", "state": "Starting", "start": 1, "metrics_address": "",
                "alarm": "", "silent_seconds": 0.0}])"));
  EXPECT_EQ(json["bucket_summary"],
            nlohmann::json::parse(R"({"states": {"Ready": 1}, "largest_epoch": 1,
                "largest_lag": 0, "rolled_back": 0, "rolled_back_buckets": 0})"));
  EXPECT_EQ(json["buckets"],
            nlohmann::json::parse(R"([{"bucket": 0, "state": "Ready", "epoch": 1, "generation": 0,
                "primary": {"slot": 0, "start": 1},
                "members": [{"slot": 0, "start": 1}, {"slot": 1, "start": 1},
                            {"slot": 2, "start": 1}],
                "learner": null, "leaver": null, "heir": {"slot": 1, "start": 1},
                "committed": 1200, "lag": 0, "rolled_back": 17}])"));
}

TEST(StatusJsonTest, ALastFailoverIsNullWhereThereWasNoneOrNoneIsKnown) {
  v1::JobStatus status = RunningJob();
  status.mutable_last_failover()->set_restores(64);
  auto json = nlohmann::json::parse(StatusJson("now", status, /*live=*/false));
  EXPECT_TRUE(json["last_failover"].is_null());
  EXPECT_EQ(json["failovers"], 0);
  EXPECT_EQ(json["restores"], 64);
  status.mutable_last_failover()->set_failovers(3);
  json = nlohmann::json::parse(StatusJson("now", status, /*live=*/false));
  EXPECT_TRUE(json["last_failover"].is_null());
  EXPECT_EQ(json["failovers"], 3);
}

TEST(StatusJsonTest, IsValidWhateverTheMessageHolds) {
  v1::JobStatus status = RunningJob();
  status.set_message("line\n\"quoted\"\x01");
  const auto json = nlohmann::json::parse(StatusJson("now", status, /*live=*/false));
  EXPECT_EQ(json["message"], "line\n\"quoted\"\x01");
  EXPECT_TRUE(json["last_failover"].is_null());
}

}  // namespace
}  // namespace adamant::cli
