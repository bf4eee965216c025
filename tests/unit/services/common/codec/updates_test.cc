#include "services/common/codec/updates.h"

#include <gtest/gtest.h>

#include "proto/adamant/v1/parameter_server.pb.h"

namespace adamant::codec {
namespace {

TEST(UpdatesCodecTest, AnUpdateComesBackAsItWas) {
  v1::ShardUpdate message;
  Encode(protocol::ShardUpdate{.shard = 1,
                               .configuration_version = 2,
                               .sequence = 3,
                               .fetched_version = 4,
                               .after_loss = true,
                               .kind = protocol::UpdateKind::kOuterProduct,
                               .operands = 5},
         message);
  const protocol::ShardUpdate update = Decode(message);
  EXPECT_EQ(update.shard, 1u);
  EXPECT_EQ(update.configuration_version, 2u);
  EXPECT_EQ(update.sequence, 3u);
  EXPECT_EQ(update.fetched_version, 4u);
  EXPECT_TRUE(update.after_loss);
  EXPECT_EQ(update.kind, protocol::UpdateKind::kOuterProduct);
  EXPECT_EQ(update.operands, 5u);
}

TEST(UpdatesCodecTest, TermsComeBackAsTheyWere) {
  v1::Push message;
  Encode(protocol::PushTerms{.job_examples = 7, .examples = 8}, message);
  EXPECT_FALSE(message.has_correction()) << "there is none";
  const Correction correction = {.rate = 0.5F, .memory = 3};
  Encode(protocol::PushTerms{.job_examples = 7, .examples = 8, .correction = correction}, message);
  const protocol::PushTerms terms = Decode(message);
  EXPECT_EQ(terms.job_examples, 7u);
  EXPECT_EQ(terms.examples, 8u);
  EXPECT_EQ(terms.correction, correction);
}

TEST(UpdatesCodecTest, AFetchedShardComesBackAsItWas) {
  v1::FetchReply message;
  Encode(protocol::FetchedShard{.shard = 1,
                                .outcome = protocol::FetchOutcome::kNoSuchSnapshot,
                                .version = 2,
                                .included_sequence = 3,
                                .persisted = 4,
                                .configuration_version = 5,
                                .examples = 6},
         *message.add_values());
  const protocol::FetchedShard fetched = Decode(message).at(0);
  EXPECT_EQ(fetched.shard, 1u);
  EXPECT_EQ(fetched.outcome, protocol::FetchOutcome::kNoSuchSnapshot);
  EXPECT_EQ(fetched.version, 2u);
  EXPECT_EQ(fetched.included_sequence, 3u);
  EXPECT_EQ(fetched.persisted, 4u);
  EXPECT_EQ(fetched.configuration_version, 5u);
  EXPECT_EQ(fetched.examples, 6u);
}

TEST(UpdatesCodecTest, OutcomesThatDoNotExistAreRefusals) {
  v1::FetchReply fetch;
  fetch.add_values()->set_outcome(static_cast<v1::ShardValue::Outcome>(99));
  EXPECT_EQ(Decode(fetch).at(0).outcome, protocol::FetchOutcome::kNotReady);
  v1::PushReply push;
  push.add_acks()->set_outcome(static_cast<v1::ShardAck::Outcome>(99));
  EXPECT_EQ(Decode(push).at(0).outcome, protocol::PushOutcome::kMalformed);
}

}  // namespace
}  // namespace adamant::codec
