#include "services/parameter_server/rpc/messages/message_batch.h"

#include <gmock/gmock.h>
#include <google/protobuf/stubs/logging.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/base/rng.h"
#include "services/common/rpc/wire.h"

namespace adamant::parameter_server {
namespace {

using ::testing::HasSubstr;

const ShardLayout& Layout() {
  static const ShardLayout kLayout(
      {{.name = "a", .layer = "a", .shape = {5}}, {.name = "b", .layer = "b", .shape = {2, 3}}}, 1);
  return kLayout;
}

const MessageBatchLimits& Limits() {
  static const MessageBatchLimits kLimits{.layout = Layout(), .writers = 3};
  return kLimits;
}

std::string Bytes(const rpc::OutgoingFrame& frame) {
  std::string bytes = rpc::EncodeFront(frame.header);
  for (const rpc::LentBytes& piece : frame.payload) {
    bytes.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
  }
  return bytes;
}

/// As a transport delivers it, cut at odd places.
absl::StatusOr<std::vector<PeerMessage>> Deliver(const std::string& bytes) {
  constexpr std::size_t kChunk = 13;
  const auto owner = std::make_shared<const std::string>(bytes);
  std::vector<std::span<const std::byte>> pieces;
  for (auto rest = std::as_bytes(std::span(*owner)); !rest.empty();) {
    pieces.push_back(rest.first(std::min(kChunk, rest.size())));
    rest = rest.subspan(pieces.back().size());
  }
  auto frame = rpc::DecodeFrame(std::move(pieces), owner);
  if (!frame.ok()) {
    return frame.status();
  }
  return DecodeMessageBatch(*std::move(frame), Limits());
}

std::vector<PeerMessage> DeliverOne(PeerMessage message) {
  const std::vector<PeerMessage> messages = {std::move(message)};
  const auto delivered = Deliver(Bytes(EncodeMessageBatch(messages)));
  EXPECT_TRUE(delivered.ok()) << delivered.status();
  return delivered.value_or(std::vector<PeerMessage>());
}

/// Memory that a worker's push came in.
struct Received {
  std::vector<float> dense = {1, 2, 3, 4, 5};
  std::vector<float> activations = {6, 7, 8};
  std::vector<float> errors = {9, 10};
};

EntryPtr MakeEntry() {
  const auto received = std::make_shared<const Received>();
  const auto operands = std::make_shared<const SharedOperands>(
      SharedOperands{.operands = {.tensor = 1,
                                  .rows = 1,
                                  .inputs = 3,
                                  .outputs = 2,
                                  .activations = received->activations,
                                  .errors = received->errors},
                     .owner = received});
  auto entry = std::make_shared<Entry>();
  entry->lsn = 7;
  entry->origin = 2;
  entry->updates = {{.shard = 0,
                     .writer = {.slot = 1, .incarnation = 4},
                     .sequence = 9,
                     .after_loss = true,
                     .kind = UpdateKind::kGradient,
                     .job_examples = 100,
                     .examples = 64,
                     .correction = {.rate = 0.5f, .memory = 3},
                     .values = received->dense},
                    {.shard = 1,
                     .writer = {.slot = 2, .incarnation = 5},
                     .sequence = 10,
                     .kind = UpdateKind::kOuterProduct,
                     .operands = operands}};
  entry->puts = {{.key = "ledger/0", .version = 3, .value = "counted"}};
  entry->owner = received;
  return entry;
}

PeerMessage MakePrepare() {
  return {.bucket = 0,
          .configuration_version = 3,
          .kind = Prepare{.base = 5, .committed = 6, .entry = MakeEntry()}};
}

std::vector<float> ToVector(std::span<const float> values) {
  return {values.begin(), values.end()};
}

TEST(MessageBatchTest, AnEntryArrivesWhole) {
  const auto delivered = DeliverOne(MakePrepare());
  ASSERT_EQ(delivered.size(), 1u);
  EXPECT_EQ(delivered[0].configuration_version, 3u);
  const auto& prepare = std::get<Prepare>(delivered[0].kind);
  EXPECT_EQ(prepare.base, 5u);
  EXPECT_EQ(prepare.committed, 6u);
  const Entry& entry = *prepare.entry;
  EXPECT_EQ(entry.lsn, 7u);
  EXPECT_EQ(entry.origin, 2u);
  EXPECT_EQ(entry.bytes, BytesOf(MakePrepare()));
  ASSERT_EQ(entry.updates.size(), 2u);
  EXPECT_EQ(entry.updates[0].writer.incarnation, 4u);
  EXPECT_EQ(entry.updates[0].sequence, 9u);
  EXPECT_TRUE(entry.updates[0].after_loss);
  EXPECT_EQ(entry.updates[0].kind, UpdateKind::kGradient);
  EXPECT_EQ(entry.updates[0].job_examples, 100u);
  EXPECT_EQ(entry.updates[0].examples, 64u);
  EXPECT_EQ(entry.updates[0].correction, (Correction{.rate = 0.5f, .memory = 3}));
  EXPECT_EQ(entry.updates[1].correction, Correction{});
  EXPECT_EQ(ToVector(entry.updates[0].values), Received().dense);
  ASSERT_NE(entry.updates[1].operands, nullptr);
  const Operands& operands = entry.updates[1].operands->operands;
  EXPECT_EQ(operands.outputs, 2u);
  EXPECT_EQ(ToVector(operands.activations), Received().activations);
  EXPECT_EQ(ToVector(operands.errors), Received().errors);
  ASSERT_EQ(entry.puts.size(), 1u);
  EXPECT_EQ(entry.puts[0].key, "ledger/0");
  EXPECT_EQ(entry.puts[0].version, 3u);
  EXPECT_EQ(entry.puts[0].value, "counted");
}

TEST(MessageBatchTest, ValuesAreLentAndSharedOperandsWrittenOnce) {
  const std::vector<PeerMessage> messages = {MakePrepare()};
  auto entry = std::make_shared<Entry>(*std::get<Prepare>(messages[0].kind).entry);
  entry->updates.push_back(entry->updates[1]);
  const std::vector<PeerMessage> twice = {
      {.configuration_version = 3, .kind = Prepare{.entry = entry}}};
  const rpc::OutgoingFrame frame = EncodeMessageBatch(twice);
  ASSERT_EQ(frame.payload.size(), 3u) << "activations, errors, dense values";
  EXPECT_EQ(frame.payload[0].bytes.data(),
            std::as_bytes(entry->updates[1].operands->operands.activations).data());
  EXPECT_EQ(frame.payload[2].bytes.data(), std::as_bytes(entry->updates[0].values).data());
  const auto delivered = Deliver(Bytes(frame));
  ASSERT_TRUE(delivered.ok()) << delivered.status();
  const Entry& received = *std::get<Prepare>(delivered->at(0).kind).entry;
  EXPECT_EQ(received.updates[1].operands, received.updates[2].operands);
}

TEST(MessageBatchTest, WhatAnEntryHoldsOutlivesTheFrame) {
  EntryPtr entry;
  {
    auto delivered = DeliverOne(MakePrepare());
    entry = std::get<Prepare>(delivered.at(0).kind).entry;
  }
  EXPECT_EQ(ToVector(entry->updates[0].values), Received().dense);
}

TEST(MessageBatchTest, AllOtherKindsArriveWhole) {
  const Clock::TimePoint sent{std::chrono::nanoseconds(123456789)};
  const std::string stored = "odd length";
  const std::vector<PeerMessage> messages = {
      {.configuration_version = 1,
       .kind = PrepareAck{.acked = 8, .gap = true, .copy = 4, .flushed = 6}},
      {.configuration_version = 2,
       .kind = Beacon{.generation = 4,
                      .primary = {1, 2},
                      .replicas = {{1, 2}, {3, 4}},
                      .base = 5,
                      .committed = 6,
                      .sent = sent,
                      .flush = true}},
      {.configuration_version = 3,
       .kind = BeaconAnswer{.sent = sent, .acked = 7, .copy = 5, .flushed = 3}},
      {.configuration_version = 4, .kind = Released{}},
      {.configuration_version = 5,
       .kind = CopyBegin{.copy = 1, .base = 2, .base_origin = 5, .generation = 3, .parts = 4}},
      {.configuration_version = 6,
       .kind = CopyPart{.copy = 1,
                        .index = 2,
                        .content = CopiedShard{0, std::make_shared<const std::string>(stored)}}},
      {.configuration_version = 7,
       .kind = CopyPart{.copy = 1, .index = 3, .content = CopiedRecord{"ledger/0", 5, "value"}}},
      {.configuration_version = 8, .kind = CopyAck{.copy = 1, .index = 3}},
      MakePrepare()};  // its floats follow the part of odd length
  const auto delivered = Deliver(Bytes(EncodeMessageBatch(messages)));
  ASSERT_TRUE(delivered.ok()) << delivered.status();
  ASSERT_EQ(delivered->size(), messages.size());
  EXPECT_TRUE(std::get<PrepareAck>(delivered->at(0).kind).gap);
  EXPECT_EQ(std::get<PrepareAck>(delivered->at(0).kind).acked, 8u);
  EXPECT_EQ(std::get<PrepareAck>(delivered->at(0).kind).copy, 4u);
  EXPECT_EQ(std::get<PrepareAck>(delivered->at(0).kind).flushed, 6u);
  const auto& beacon = std::get<Beacon>(delivered->at(1).kind);
  EXPECT_EQ(beacon.generation, 4u);
  EXPECT_EQ(beacon.primary, (ServerId{1, 2}));
  EXPECT_EQ(beacon.replicas, (std::vector<ServerId>{{1, 2}, {3, 4}}));
  EXPECT_EQ(beacon.sent, sent);
  EXPECT_TRUE(beacon.flush);
  EXPECT_EQ(std::get<BeaconAnswer>(delivered->at(2).kind).sent, sent);
  EXPECT_EQ(std::get<BeaconAnswer>(delivered->at(2).kind).copy, 5u);
  EXPECT_EQ(std::get<BeaconAnswer>(delivered->at(2).kind).flushed, 3u);
  EXPECT_TRUE(std::holds_alternative<Released>(delivered->at(3).kind));
  EXPECT_EQ(std::get<CopyBegin>(delivered->at(4).kind).parts, 4u);
  EXPECT_EQ(std::get<CopyBegin>(delivered->at(4).kind).base_origin, 5u);
  const auto& shard = std::get<CopyPart>(delivered->at(5).kind);
  EXPECT_EQ(*std::get<CopiedShard>(shard.content).stored, stored);
  const auto& record = std::get<CopyPart>(delivered->at(6).kind);
  EXPECT_EQ(std::get<CopiedRecord>(record.content).value, "value");
  EXPECT_EQ(std::get<CopyAck>(delivered->at(7).kind).index, 3u);
  const Entry& entry = *std::get<Prepare>(delivered->at(8).kind).entry;
  EXPECT_EQ(ToVector(entry.updates[0].values), Received().dense);
}

/// What a peer must not send, with a word of the complaint.
class BadMessageBatchTest : public testing::Test {
 protected:
  static void ExpectRefused(PeerMessage message, const std::string& why) {
    const std::vector<PeerMessage> messages = {std::move(message)};
    const auto delivered = Deliver(Bytes(EncodeMessageBatch(messages)));
    EXPECT_EQ(delivered.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(delivered.status().message()), HasSubstr(why));
  }

  /// A prepare whose entry was changed.
  template <class Change>
  static PeerMessage Changed(const Change& change) {
    auto entry = std::make_shared<Entry>(*MakeEntry());
    change(*entry);
    return {.configuration_version = 3, .kind = Prepare{.entry = std::move(entry)}};
  }
};

TEST_F(BadMessageBatchTest, WhatDoesNotFitTheModelIsRefused) {
  ExpectRefused({.bucket = 9, .kind = Released{}}, "bucket 9");
  ExpectRefused(Changed([](Entry& e) { e.updates[0].shard = 9; }), "shard 9");
  ExpectRefused(Changed([](Entry& e) { e.updates[0].writer.slot = 3; }), "worker 3");
  ExpectRefused(Changed([](Entry& e) { e.updates[0].values = e.updates[0].values.first(4); }),
                "shorter");
  ExpectRefused(Changed([](Entry& e) { e.updates[0].shard = 1; }), "shorter");
  ExpectRefused(Changed([](Entry& e) { e.updates[1].shard = 0; }), "without its operands");
  ExpectRefused(Changed([](Entry& e) { e.puts[0].key.clear(); }), "record");
  ExpectRefused(Changed([](Entry& e) {
                  auto operands = *e.updates[1].operands;
                  operands.operands.tensor = 0;
                  e.updates[1].operands = std::make_shared<const SharedOperands>(operands);
                }),
                "tensor 0");
}

TEST_F(BadMessageBatchTest, OperandsThatClaimMoreThanThereIsAreRefused) {
  v1::MessageBatch message_batch;
  v1::Operands& operands = *message_batch.add_operands();
  operands.set_rows(0xffffffff);
  operands.set_inputs(0xffffffff);
  operands.set_outputs(0xffffffff);
  const auto delivered = Deliver(rpc::EncodeFront(message_batch.SerializeAsString()));
  EXPECT_THAT(std::string(delivered.status().message()), HasSubstr("shorter"));
}

TEST_F(BadMessageBatchTest, BytesThatBelongToNothingAreRefused) {
  const std::vector<PeerMessage> messages = {MakePrepare()};
  const auto delivered = Deliver(Bytes(EncodeMessageBatch(messages)) + "more");
  EXPECT_THAT(std::string(delivered.status().message()), HasSubstr("longer"));
}

TEST_F(BadMessageBatchTest, TooManyMessagesAreRefused) {
  const std::vector<PeerMessage> messages(kMaxMessageBatchMessages + 1, {.kind = Released{}});
  EXPECT_EQ(Deliver(Bytes(EncodeMessageBatch(messages))).status().code(),
            absl::StatusCode::kInvalidArgument);
}

/// For ASan, which looks at every value.
void ReadValues(const std::vector<PeerMessage>& messages) {
  for (const PeerMessage& message : messages) {
    if (const auto* prepare = std::get_if<Prepare>(&message.kind)) {
      for (const LoggedUpdate& update : prepare->entry->updates) {
        volatile float sum = std::accumulate(update.values.begin(), update.values.end(), 0.0F);
        static_cast<void>(sum);
      }
    }
  }
}

TEST_F(BadMessageBatchTest, DamagedMessageBatchesNeverCrash) {
  const std::vector<PeerMessage> messages = {
      MakePrepare(),
      {.configuration_version = 6,
       .kind = CopyPart{.content = CopiedShard{0, std::make_shared<const std::string>("abc")}}},
      {.configuration_version = 2, .kind = Beacon{.primary = {1, 2}, .replicas = {{1, 2}, {3, 4}}}},
      MakePrepare()};
  const std::string good = Bytes(EncodeMessageBatch(messages));
  const google::protobuf::LogSilencer silence;
  Rng rng(17);
  for (int round = 0; round < 20'000; ++round) {
    std::string bad = good;
    for (std::uint64_t flips = 1 + rng.Below(3); flips > 0; --flips) {
      char& flipped = bad[rng.Below(bad.size())];
      flipped = static_cast<char>(flipped ^ (1 << rng.Below(8)));
    }
    if (rng.Below(4) == 0) {
      bad.resize(rng.Below(bad.size()));
    }
    if (const auto delivered = Deliver(bad); delivered.ok()) {
      ReadValues(*delivered);
    }
  }
}

}  // namespace
}  // namespace adamant::parameter_server
