#include "operator/control/codec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>

#include "operator/core/state/state.h"
#include "proto/adamant/v1/control.pb.h"

namespace adamant::control {
namespace {

TEST(CodecTest, AJoinKeepsItsFields) {
  v1::MemberMessage message;
  v1::Join& join = *message.mutable_join();
  join.set_format_version(1);
  join.set_role(v1::PARAMETER_SERVER);
  join.set_slot(3);
  join.set_uid("u");
  join.set_address("a:1");
  join.set_metrics_address("m:2");
  join.set_incarnation(7);
  join.set_generation(9);
  join.set_pod_uid("p");
  const auto decoded = std::get<controller::Join>(*Decode(message));
  EXPECT_EQ(decoded.id, (controller::MemberId{controller::Role::kParameterServer, 3}));
  EXPECT_EQ(decoded.uid, "u");
  EXPECT_EQ(decoded.address, "a:1");
  EXPECT_EQ(decoded.metrics_address, "m:2");
  EXPECT_EQ(decoded.incarnation, 7u);
  EXPECT_EQ(decoded.generation, 9u);
  EXPECT_EQ(decoded.pod_uid, "p");
}

TEST(CodecTest, MessagesWithoutContentOrWithAnUnknownRoleAreNone) {
  v1::MemberMessage message;
  EXPECT_FALSE(Decode(message).has_value());
  message.mutable_join()->set_role(static_cast<v1::Role>(9));
  EXPECT_FALSE(Decode(message).has_value());
  message.mutable_join()->set_role(v1::ROLE_UNSPECIFIED);
  EXPECT_FALSE(Decode(message).has_value());
}

TEST(CodecTest, HeartbeatsOfEveryRoleAreRead) {
  v1::MemberMessage message;
  v1::WorkerProgress& worker = *message.mutable_heartbeat()->mutable_worker();
  worker.set_trained_examples(5);
  worker.add_staleness_counts(2);
  message.mutable_heartbeat()->set_busy_seconds(1.5);
  const auto heartbeat = std::get<controller::Heartbeat>(*Decode(message));
  const auto progress = std::get<controller::WorkerProgress>(heartbeat.progress);
  EXPECT_EQ(progress.trained_examples, 5u);
  EXPECT_EQ(heartbeat.busy_seconds, 1.5);
  EXPECT_EQ(progress.staleness_counts, std::vector<std::uint64_t>{2});
  message.mutable_heartbeat()->mutable_parameter_server()->set_alarm("disk full");
  const auto server = std::get<controller::Heartbeat>(*Decode(message));
  EXPECT_EQ(std::get<controller::ParameterServerProgress>(server.progress).alarm, "disk full");
}

TEST(CodecTest, TheFilesOfTheDataAreReadAndTold) {
  v1::MemberMessage message;
  v1::DataFile& file = *message.mutable_heartbeat()->mutable_data_server()->add_data_files();
  file.set_field("spec.data.train.idx.images");
  file.set_fingerprint(0xfedcba9876543210);
  const auto heartbeat = std::get<controller::Heartbeat>(*Decode(message));
  const auto files = std::get<controller::DataServerProgress>(heartbeat.progress).data_files;
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].field, file.field());
  EXPECT_EQ(files[0].fingerprint, file.fingerprint());
  const v1::ControllerMessage told = Encode(controller::Welcome{.data_files = files});
  ASSERT_EQ(told.welcome().data_files_size(), 1);
  EXPECT_EQ(told.welcome().data_files(0).SerializeAsString(), file.SerializeAsString());
}

TEST(CodecTest, TheExamplesOfAnEpochAreTold) {
  const v1::ControllerMessage told = Encode(controller::Welcome{.training_examples = 60'000});
  EXPECT_EQ(told.welcome().training_examples(), 60'000u);
}

TEST(CodecTest, OfAWorkerWhoseLossIsNotFiniteNothingIsSummed) {
  v1::MemberMessage message;
  v1::WorkerProgress& worker = *message.mutable_heartbeat()->mutable_worker();
  message.mutable_heartbeat()->set_busy_seconds(HUGE_VAL);
  worker.set_trained_examples(64);
  for (const double loss : {std::nan(""), HUGE_VAL}) {
    worker.set_loss_sum(loss);
    const auto heartbeat = std::get<controller::Heartbeat>(*Decode(message));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(heartbeat.progress));
    EXPECT_EQ(heartbeat.busy_seconds, 0);
  }
  worker.set_loss_sum(1);
  worker.set_held_seconds(std::nan(""));
  const auto heartbeat = std::get<controller::Heartbeat>(*Decode(message));
  EXPECT_EQ(std::get<controller::WorkerProgress>(heartbeat.progress).held_seconds, 0);
}

TEST(CodecTest, WhatAWorkerSaysOfDivergenceIsReadAndBounded) {
  v1::MemberMessage message;
  v1::WorkerProgress& worker = *message.mutable_heartbeat()->mutable_worker();
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    worker.add_batches_of_others(i);
    v1::DeadUnits& layer = *worker.add_dead_units();
    layer.set_layer("relu" + std::to_string(i));
    layer.set_units(60);
    layer.set_dead(i);
  }
  const auto heartbeat = std::get<controller::Heartbeat>(*Decode(message));
  const auto progress = std::get<controller::WorkerProgress>(heartbeat.progress);
  ASSERT_EQ(progress.batches_of_others.size(), controller::kStalenessBins);
  EXPECT_EQ(progress.batches_of_others[3], 3u);
  ASSERT_EQ(progress.dead_units.size(), 1024u);
  EXPECT_EQ(progress.dead_units[7].layer, "relu7");
  EXPECT_EQ(progress.dead_units[7].units, 60u);
  EXPECT_EQ(progress.dead_units[7].dead, 7u);
}

TEST(CodecTest, AFailureSaysWhetherTrainingDiverged) {
  v1::MemberMessage message;
  message.mutable_failure()->set_message("an update holds NaN");
  EXPECT_FALSE(std::get<controller::Failure>(*Decode(message)).diverged);
  message.mutable_failure()->set_diverged(true);
  const auto failure = std::get<controller::Failure>(*Decode(message));
  EXPECT_TRUE(failure.diverged);
  EXPECT_EQ(failure.message, "an update holds NaN");
}

TEST(CodecTest, ASnapshotThatIsNotTakenSaysWhetherThereWasRoom) {
  v1::MemberMessage message;
  message.mutable_snapshot_taken()->set_error("bucket 1 is not served yet");
  EXPECT_FALSE(std::get<controller::SnapshotTaken>(*Decode(message)).disk_full);
  message.mutable_snapshot_taken()->set_disk_full(true);
  const auto taken = std::get<controller::SnapshotTaken>(*Decode(message));
  EXPECT_TRUE(taken.disk_full);
  EXPECT_EQ(taken.error, "bucket 1 is not served yet");
}

TEST(CodecTest, TheCommandToTakeASnapshotIsSentWhole) {
  const v1::ControllerMessage message = Encode(controller::TakeSnapshot{.snapshot = 7,
                                                                        .keep_from = 5,
                                                                        .keep = {2, 3},
                                                                        .writers_from = {1, 4},
                                                                        .generations = {6, 8}});
  const v1::TakeSnapshot& take = message.take_snapshot();
  EXPECT_EQ(take.snapshot(), 7u);
  EXPECT_EQ(take.keep_from(), 5u);
  EXPECT_THAT(take.keep(), testing::ElementsAre(2, 3));
  EXPECT_THAT(take.writers_from(), testing::ElementsAre(1, 4));
  EXPECT_THAT(take.generations(), testing::ElementsAre(6, 8));
}

TEST(CodecTest, AnEvaluationKeepsItsFields) {
  v1::MemberMessage message;
  v1::Evaluated& evaluated = *message.mutable_evaluated();
  evaluated.set_epoch(2);
  evaluated.set_snapshot(3);
  evaluated.set_examples(1000);
  evaluated.set_correct(900);
  evaluated.set_loss_sum(1.5);
  evaluated.set_most_frequent(113);
  const auto decoded = std::get<controller::Evaluated>(*Decode(message));
  EXPECT_EQ(decoded.epoch, 2u);
  EXPECT_EQ(decoded.snapshot, 3u);
  EXPECT_EQ(decoded.examples, 1000u);
  EXPECT_EQ(decoded.correct, 900u);
  EXPECT_EQ(decoded.loss_sum, 1.5);
  EXPECT_EQ(decoded.most_frequent, 113u);
}

TEST(CodecTest, MembershipIsSentWhole) {
  controller::Membership view;
  view.version = 4;
  view.members.push_back({.id = {controller::Role::kWorker, 1}, .incarnation = 2, .address = "x"});
  view.buckets.push_back({.epoch = 1,
                          .generation = 1,
                          .primary = {2, 7},
                          .members = {{2, 7}, {0, 1}},
                          .created = true});
  view.part_owner = {1, 0};
  const v1::Membership encoded = Encode(controller::ControllerMessage(view)).membership();
  EXPECT_EQ(encoded.version(), 4u);
  EXPECT_EQ(encoded.members(0).role(), v1::WORKER);
  EXPECT_EQ(encoded.members(0).incarnation(), 2u);
  EXPECT_TRUE(encoded.buckets(0).created());
  EXPECT_EQ(encoded.buckets(0).primary().slot(), 2u);
  EXPECT_EQ(encoded.part_owner_size(), 2);
}

TEST(CodecTest, AReportComesBackAsItWas) {
  controller::JobReport report;
  report.name = "n";
  report.phase = controller::Phase::kEvaluating;
  report.epoch = 3;
  report.accuracy = 0.5;
  report.members.push_back({.id = {controller::Role::kDataServer, 0},
                            .incarnation = 4,
                            .state = "Running",
                            .metrics_address = "m",
                            .buckets = 0,
                            .address = "a:1",
                            .alarm = "disk full"});
  const controller::JobReport back = Decode(Encode(report));
  EXPECT_EQ(back.name, "n");
  EXPECT_EQ(back.phase, controller::Phase::kEvaluating);
  EXPECT_EQ(back.epoch, 3u);
  EXPECT_EQ(back.accuracy, 0.5);
  ASSERT_EQ(back.members.size(), 1u);
  EXPECT_EQ(back.members[0].incarnation, 4u);
  EXPECT_EQ(back.members[0].address, "a:1");
  EXPECT_EQ(back.members[0].alarm, "disk full");
}

TEST(CodecTest, AReportKeepsWhatItSaysOfAttempts) {
  controller::JobReport report;
  report.attempt = 3;
  report.rate_factor = 0.25;
  report.divergence = "all 60 units of layer relu1 are dead";
  report.undone_updates = 1234;
  report.undone_examples = 56789;
  report.batches_of_others = 2.5;
  const controller::JobReport back = Decode(Encode(report));
  EXPECT_EQ(back.attempt, 3u);
  EXPECT_EQ(back.rate_factor, 0.25);
  EXPECT_EQ(back.divergence, report.divergence);
  EXPECT_EQ(back.undone_updates, 1234u);
  EXPECT_EQ(back.undone_examples, 56789u);
  EXPECT_EQ(back.batches_of_others, 2.5);
}

TEST(CodecTest, AStatusThatSaysNothingOfAttemptsIsOfTheFirst) {
  const controller::JobReport report = Decode(v1::JobStatus());
  EXPECT_EQ(report.attempt, 1u);
  EXPECT_EQ(report.rate_factor, 1);
}

TEST(CodecTest, AProposalComesThroughAndAnUnknownKindDoesNot) {
  v1::MemberMessage message;
  v1::Proposal& proposal = *message.mutable_proposals()->add_proposals();
  proposal.set_bucket(3);
  proposal.set_epoch(9);
  proposal.set_kind(v1::Proposal::ADD);
  proposal.mutable_proposer()->set_slot(1);
  proposal.mutable_proposer()->set_incarnation(4);
  proposal.mutable_subject()->set_slot(2);
  message.mutable_proposals()->add_proposals()->set_kind(static_cast<v1::Proposal::Kind>(17));
  const auto decoded = Decode(message);
  ASSERT_TRUE(decoded.has_value());
  const auto& proposals = std::get<controller::Proposals>(*decoded).proposals;
  ASSERT_EQ(proposals.size(), 1u);
  EXPECT_EQ(proposals[0].kind, controller::Proposal::Kind::kAdd);
  EXPECT_EQ(proposals[0].proposer, (controller::Holder{1, 4}));
  EXPECT_EQ(proposals[0].subject.slot, 2u);
}

TEST(CodecTest, StatusOfBucketsComesBackAsItWas) {
  controller::JobReport report;
  controller::Bucket record{
      .epoch = 4, .generation = 2, .primary = {1, 3}, .members = {{1, 3}, {0, 1}}};
  record.created = true;
  record.heir = controller::Holder{0, 1};
  record.restored_snapshot = 6;
  report.buckets.push_back(
      {.state = "Degraded", .record = record, .committed = 10, .lag = 2, .rolled_back = 5});
  report.last_failover = controller::FailoverReport{.bucket = 0,
                                                    .epoch = 4,
                                                    .times = {.detect_seconds = 0.5},
                                                    .catch_up_seconds = 1.5,
                                                    .failovers = 3,
                                                    .restores = 1};
  report.checkpoint = 12;
  report.checkpoint_held_seconds = 0.25;
  report.updates_lost = 9;
  const controller::JobReport decoded = Decode(Encode(report));
  ASSERT_EQ(decoded.buckets.size(), 1u);
  EXPECT_EQ(decoded.buckets[0].record, record);
  EXPECT_EQ(decoded.buckets[0].state, "Degraded");
  EXPECT_EQ(decoded.buckets[0].rolled_back, 5u);
  ASSERT_TRUE(decoded.last_failover.has_value());
  EXPECT_DOUBLE_EQ(decoded.last_failover->times.detect_seconds, 0.5);
  EXPECT_EQ(decoded.last_failover->failovers, 3u);
  EXPECT_EQ(decoded.checkpoint, 12u);
  EXPECT_DOUBLE_EQ(decoded.checkpoint_held_seconds, 0.25);
  EXPECT_EQ(decoded.updates_lost, 9u);
}

TEST(CodecTest, OfManyBucketsThoseInTroubleAndASummaryAreTold) {
  controller::JobReport report;
  for (std::uint32_t bucket = 0; bucket < 65'536; ++bucket) {
    report.buckets.push_back({.bucket = bucket,
                              .state = bucket == 60'000 ? "Blocked" : "Ready",
                              .record = {.epoch = bucket, .members = {{0, 1}, {1, 1}, {2, 1}}},
                              .committed = 1'000'000'000'000,
                              .rolled_back = bucket < 3 ? 2u : 0u});
    report.bucket_summary.Add(report.buckets.back());
  }
  const v1::JobStatus encoded = Encode(report);
  EXPECT_LT(encoded.ByteSizeLong(), 1u << 20);
  const controller::JobReport decoded = Decode(encoded);
  ASSERT_EQ(decoded.buckets.size(), static_cast<std::size_t>(kMostBuckets));
  EXPECT_EQ(decoded.buckets[0].bucket, 60'000u);
  EXPECT_EQ(decoded.buckets[1].bucket, 0u);
  EXPECT_EQ(decoded.bucket_summary.states.at("Ready"), 65'535u);
  EXPECT_EQ(decoded.bucket_summary.states.at("Blocked"), 1u);
  EXPECT_EQ(decoded.bucket_summary.largest_epoch, 65'535u);
  EXPECT_EQ(decoded.bucket_summary.rolled_back, 6u);
  EXPECT_EQ(decoded.bucket_summary.rolled_back_buckets, 3u);
}

}  // namespace
}  // namespace adamant::control
