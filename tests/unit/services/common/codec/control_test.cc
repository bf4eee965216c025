#include "services/common/codec/control.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <variant>

#include "proto/adamant/v1/control.pb.h"

namespace adamant::codec {
namespace {

TEST(ControlCodecTest, AJoinKeepsItsFields) {
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
  const auto decoded = std::get<protocol::Join>(*Decode(message));
  EXPECT_EQ(decoded.id, (protocol::SlotId{protocol::Role::kParameterServer, 3}));
  EXPECT_EQ(decoded.uid, "u");
  EXPECT_EQ(decoded.address, "a:1");
  EXPECT_EQ(decoded.metrics_address, "m:2");
  EXPECT_EQ(decoded.incarnation, 7u);
  EXPECT_EQ(decoded.generation, 9u);
  EXPECT_EQ(decoded.pod_uid, "p");
}

TEST(ControlCodecTest, MessagesWithoutContentOrWithAnUnknownRoleAreNone) {
  v1::MemberMessage message;
  EXPECT_FALSE(Decode(message).has_value());
  message.mutable_join()->set_role(static_cast<v1::Role>(9));
  EXPECT_FALSE(Decode(message).has_value());
  message.mutable_join()->set_role(v1::ROLE_UNSPECIFIED);
  EXPECT_FALSE(Decode(message).has_value());
}

TEST(ControlCodecTest, HeartbeatsOfEveryRoleAreRead) {
  v1::MemberMessage message;
  v1::WorkerProgress& worker = *message.mutable_heartbeat()->mutable_worker();
  worker.set_trained_examples(5);
  worker.add_staleness_counts(2);
  message.mutable_heartbeat()->set_busy_seconds(1.5);
  const auto heartbeat = std::get<protocol::Heartbeat>(*Decode(message));
  const auto progress = std::get<protocol::WorkerProgress>(heartbeat.progress);
  EXPECT_EQ(progress.trained_examples, 5u);
  EXPECT_EQ(heartbeat.busy_seconds, 1.5);
  EXPECT_EQ(progress.update_staleness_counts, std::vector<std::uint64_t>{2});
  message.mutable_heartbeat()->mutable_parameter_server()->set_alarm("disk full");
  const auto server = std::get<protocol::Heartbeat>(*Decode(message));
  EXPECT_EQ(std::get<protocol::ParameterServerProgress>(server.progress).alarm, "disk full");
}

TEST(ControlCodecTest, TheFilesOfTheDataAreReadAndTold) {
  v1::MemberMessage message;
  v1::DataFile& file = *message.mutable_heartbeat()->mutable_data_server()->add_data_files();
  file.set_field("spec.data.train.idx.images");
  file.set_fingerprint(0xfedcba9876543210);
  const auto heartbeat = std::get<protocol::Heartbeat>(*Decode(message));
  const auto files = std::get<protocol::DataServerProgress>(heartbeat.progress).data_files;
  ASSERT_EQ(files.size(), 1u);
  EXPECT_EQ(files[0].field, file.field());
  EXPECT_EQ(files[0].fingerprint, file.fingerprint());
  const v1::ControllerMessage told = Encode(protocol::Welcome{.data_files = files});
  ASSERT_EQ(told.welcome().data_files_size(), 1);
  EXPECT_EQ(told.welcome().data_files(0).SerializeAsString(), file.SerializeAsString());
}

TEST(ControlCodecTest, TheExamplesOfAnEpochAreTold) {
  const v1::ControllerMessage told = Encode(protocol::Welcome{.training_examples = 60'000});
  EXPECT_EQ(told.welcome().training_examples(), 60'000u);
}

TEST(ControlCodecTest, OfAWorkerWhoseLossIsNotFiniteNothingIsSummed) {
  v1::MemberMessage message;
  v1::WorkerProgress& worker = *message.mutable_heartbeat()->mutable_worker();
  message.mutable_heartbeat()->set_busy_seconds(HUGE_VAL);
  worker.set_trained_examples(64);
  for (const double loss : {std::nan(""), HUGE_VAL}) {
    worker.set_loss_sum(loss);
    const auto heartbeat = std::get<protocol::Heartbeat>(*Decode(message));
    EXPECT_TRUE(std::holds_alternative<std::monostate>(heartbeat.progress));
    EXPECT_EQ(heartbeat.busy_seconds, 0);
  }
  worker.set_loss_sum(1);
  worker.set_held_seconds(std::nan(""));
  const auto heartbeat = std::get<protocol::Heartbeat>(*Decode(message));
  EXPECT_EQ(std::get<protocol::WorkerProgress>(heartbeat.progress).held_seconds, 0);
}

TEST(ControlCodecTest, WhatAWorkerSaysOfDivergenceIsReadAndBounded) {
  v1::MemberMessage message;
  v1::WorkerProgress& worker = *message.mutable_heartbeat()->mutable_worker();
  for (std::uint64_t i = 0; i < 2'000; ++i) {
    worker.add_batches_of_others(i);
    v1::DeadUnits& layer = *worker.add_dead_units();
    layer.set_layer("relu" + std::to_string(i));
    layer.set_units(60);
    layer.set_dead(i);
  }
  const auto heartbeat = std::get<protocol::Heartbeat>(*Decode(message));
  const auto progress = std::get<protocol::WorkerProgress>(heartbeat.progress);
  ASSERT_EQ(progress.batches_of_others.size(), protocol::kStalenessBins);
  EXPECT_EQ(progress.batches_of_others[3], 3u);
  ASSERT_EQ(progress.dead_units.size(), 1024u);
  EXPECT_EQ(progress.dead_units[7].layer, "relu7");
  EXPECT_EQ(progress.dead_units[7].units, 60u);
  EXPECT_EQ(progress.dead_units[7].dead, 7u);
}

TEST(ControlCodecTest, AFailureSaysWhetherTrainingDiverged) {
  v1::MemberMessage message;
  message.mutable_failure()->set_message("an update holds NaN");
  EXPECT_FALSE(std::get<protocol::Failure>(*Decode(message)).diverged);
  message.mutable_failure()->set_diverged(true);
  const auto failure = std::get<protocol::Failure>(*Decode(message));
  EXPECT_TRUE(failure.diverged);
  EXPECT_EQ(failure.message, "an update holds NaN");
}

TEST(ControlCodecTest, ASnapshotThatIsNotTakenSaysWhetherThereWasRoom) {
  v1::MemberMessage message;
  message.mutable_snapshot_taken()->set_error("bucket 1 is not served yet");
  EXPECT_FALSE(std::get<protocol::SnapshotTaken>(*Decode(message)).disk_full);
  message.mutable_snapshot_taken()->set_disk_full(true);
  const auto taken = std::get<protocol::SnapshotTaken>(*Decode(message));
  EXPECT_TRUE(taken.disk_full);
  EXPECT_EQ(taken.error, "bucket 1 is not served yet");
}

TEST(ControlCodecTest, TheCommandToTakeASnapshotIsSentWhole) {
  const v1::ControllerMessage message = Encode(protocol::TakeSnapshot{.snapshot = 7,
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

TEST(ControlCodecTest, AnEvaluationKeepsItsFields) {
  v1::MemberMessage message;
  v1::Evaluated& evaluated = *message.mutable_evaluated();
  evaluated.set_epoch(2);
  evaluated.set_snapshot(3);
  evaluated.set_examples(1000);
  evaluated.set_correct(900);
  evaluated.set_loss_sum(1.5);
  evaluated.set_most_frequent(113);
  const auto decoded = std::get<protocol::Evaluated>(*Decode(message));
  EXPECT_EQ(decoded.epoch, 2u);
  EXPECT_EQ(decoded.snapshot, 3u);
  EXPECT_EQ(decoded.examples, 1000u);
  EXPECT_EQ(decoded.correct, 900u);
  EXPECT_EQ(decoded.loss_sum, 1.5);
  EXPECT_EQ(decoded.most_frequent, 113u);
}

TEST(ControlCodecTest, MembershipIsSentWhole) {
  protocol::Membership view;
  view.version = 4;
  view.members.push_back(
      {.id = {protocol::Role::kWorker, 1}, .incarnation = 2, .address = "x", .generation = 6});
  view.buckets.push_back({.version = 1,
                          .generation = 1,
                          .primary = {2, 7},
                          .replicas = {{2, 7}, {0, 1}},
                          .created = true});
  view.part_owner = {1, 0};
  const v1::Membership encoded = Encode(protocol::ControllerMessage(view)).membership();
  EXPECT_EQ(encoded.version(), 4u);
  EXPECT_EQ(encoded.members(0).role(), v1::WORKER);
  EXPECT_EQ(encoded.members(0).incarnation(), 2u);
  EXPECT_EQ(Decode(encoded).members.at(0).generation, 6u);
  EXPECT_TRUE(encoded.buckets(0).created());
  EXPECT_EQ(encoded.buckets(0).primary().slot(), 2u);
  EXPECT_EQ(encoded.part_owner_size(), 2);
}

TEST(ControlCodecTest, AProposalComesThroughAndAnUnknownKindDoesNot) {
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
  const auto& proposals = std::get<protocol::Proposals>(*decoded).proposals;
  ASSERT_EQ(proposals.size(), 1u);
  EXPECT_EQ(proposals[0].kind, protocol::Proposal::Kind::kAdd);
  EXPECT_EQ(proposals[0].proposer, (protocol::ServerId{1, 4}));
  EXPECT_EQ(proposals[0].subject.slot, 2u);
}

// What a member says, as the controller hears it.
template <typename Kind>
Kind Heard(const Kind& said) {
  return std::get<Kind>(*Decode(Encode(protocol::MemberMessage(said))));
}

// What the controller says, as a member hears it.
template <typename Kind>
Kind Told(const Kind& said) {
  return std::get<Kind>(*Decode(Encode(protocol::ControllerMessage(said))));
}

TEST(ControlCodecTest, AJoinIsSentWhole) {
  const protocol::Join said = {.id = {.role = protocol::Role::kDataServer, .slot = 3},
                               .uid = "u",
                               .address = "a:1",
                               .metrics_address = "m:2",
                               .incarnation = 7,
                               .replication_address = "r:3",
                               .node = "n",
                               .zone = "z",
                               .generation = 9,
                               .pod_uid = "p"};
  const protocol::Join heard = Heard(said);
  EXPECT_EQ(heard.format_version, protocol::kControlFormatVersion);
  EXPECT_EQ(heard.id, said.id);
  EXPECT_EQ(heard.uid, "u");
  EXPECT_EQ(heard.address, "a:1");
  EXPECT_EQ(heard.metrics_address, "m:2");
  EXPECT_EQ(heard.incarnation, 7u);
  EXPECT_EQ(heard.replication_address, "r:3");
  EXPECT_EQ(heard.node, "n");
  EXPECT_EQ(heard.zone, "z");
  EXPECT_EQ(heard.generation, 9u);
  EXPECT_EQ(heard.pod_uid, "p");
}

TEST(ControlCodecTest, AWorkersProgressIsSentWhole) {
  const protocol::WorkerProgress said = {.trained_examples = 1,
                                         .loss_sum = 2.5,
                                         .correct = 3,
                                         .pushes_acknowledged = 4,
                                         .pushes_refused = 5,
                                         .updates_lost = 6,
                                         .update_staleness_counts = {7, 8},
                                         .epoch = 9,
                                         .updates_resent = 10,
                                         .retained_bytes = 11,
                                         .held_seconds = 12.5,
                                         .batches_of_others = {13, 14},
                                         .dead_units = {{.layer = "a", .units = 15, .dead = 16}},
                                         .grown_layer = "b",
                                         .weight_growth = 17.5};
  const auto heartbeat = Heard(protocol::Heartbeat{.progress = said, .busy_seconds = 1.5});
  EXPECT_EQ(heartbeat.busy_seconds, 1.5);
  const auto heard = std::get<protocol::WorkerProgress>(heartbeat.progress);
  EXPECT_EQ(heard.trained_examples, 1u);
  EXPECT_EQ(heard.loss_sum, 2.5);
  EXPECT_EQ(heard.correct, 3u);
  EXPECT_EQ(heard.pushes_acknowledged, 4u);
  EXPECT_EQ(heard.pushes_refused, 5u);
  EXPECT_EQ(heard.updates_lost, 6u);
  EXPECT_EQ(heard.update_staleness_counts, said.update_staleness_counts);
  EXPECT_EQ(heard.epoch, 9u);
  EXPECT_EQ(heard.updates_resent, 10u);
  EXPECT_EQ(heard.retained_bytes, 11u);
  EXPECT_EQ(heard.held_seconds, 12.5);
  EXPECT_EQ(heard.batches_of_others, said.batches_of_others);
  EXPECT_EQ(heard.dead_units, said.dead_units);
  EXPECT_EQ(heard.grown_layer, "b");
  EXPECT_EQ(heard.weight_growth, 17.5);
}

TEST(ControlCodecTest, WhatMembersAnswerIsSentWhole) {
  EXPECT_EQ(Heard(protocol::EpochEnded{4}).epoch, 4u);
  EXPECT_EQ(Heard(protocol::WorkerFlushed{5}).epoch, 5u);
  const auto paused = Heard(protocol::PushesPaused{.checkpoint = 2, .sequence = 3});
  EXPECT_EQ(paused.checkpoint, 2u);
  EXPECT_EQ(paused.sequence, 3u);
  const auto loading = Heard(protocol::Loading{.what = "fetching", .fails = true});
  EXPECT_EQ(loading.what, "fetching");
  EXPECT_TRUE(loading.fails);
  const auto failure = Heard(protocol::Failure{.message = "m", .fatal = true, .invalid = true});
  EXPECT_EQ(failure.message, "m");
  EXPECT_TRUE(failure.fatal && failure.invalid);
  EXPECT_FALSE(failure.diverged);
  Heard(protocol::Leaving{});
  Heard(protocol::Draining{});
}

TEST(ControlCodecTest, CommandsAreReadAsTheyWereSent) {
  EXPECT_EQ(Told(protocol::OpenEpoch{1}).epoch, 1u);
  EXPECT_EQ(Told(protocol::CloseEpoch{2}).epoch, 2u);
  EXPECT_EQ(Told(protocol::FlushWorker{3}).epoch, 3u);
  const auto evaluate = Told(protocol::Evaluate{.epoch = 4, .snapshot = 5});
  EXPECT_EQ(evaluate.epoch, 4u);
  EXPECT_EQ(evaluate.snapshot, 5u);
  EXPECT_EQ(Told(protocol::TakeSnapshot{.snapshot = 6, .writers_from = {7}}).writers_from,
            std::vector<Incarnation>{7});
  EXPECT_EQ(Told(protocol::PausePushes{8}).checkpoint, 8u);
  EXPECT_EQ(Told(protocol::ResumePushes{9}).checkpoint, 9u);
  EXPECT_EQ(Told(protocol::Stop{"done"}).reason, "done");
  EXPECT_EQ(Told(protocol::Refused{"no"}).reason, "no");
  EXPECT_EQ(Told(protocol::Membership{.version = 10}).version, 10u);
}

TEST(ControlCodecTest, AMemberReadsNoWelcomeWithoutItsJob) {
  EXPECT_FALSE(Decode(Encode(protocol::ControllerMessage(protocol::Welcome{}))).has_value());
  EXPECT_FALSE(Decode(v1::ControllerMessage()).has_value());
}

}  // namespace
}  // namespace adamant::codec
