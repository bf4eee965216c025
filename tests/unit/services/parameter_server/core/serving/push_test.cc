#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "services/common/base/rng.h"
#include "tests/unit/services/parameter_server/core/serving/server_fixture.h"

namespace adamant::parameter_server {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class PushTest : public ServerFixture {
 protected:
  static ShardUpdate Change(Sequence sequence, std::span<const float> values) {
    return {.sequence = sequence, .kind = UpdateKind::kWeightChange, .values = values};
  }

  const std::vector<float> ones_{1, 1, 1, 1};
};

TEST_F(PushTest, WeightChangesAreAdded) {
  Create(Flat(4, OnWorker()));
  const ShardAck ack = PushOne(Change(1, std::vector<float>{1, 2, 3, 4}));
  EXPECT_EQ(ack.outcome, PushOutcome::kApplied);
  EXPECT_EQ(ack.version, 1u);
  EXPECT_EQ(Values(0), (std::vector<float>{1, 2, 3, 4}));
}

TEST_F(PushTest, GradientsGoThroughTheOptimiserWithTheRateOfTheJobsExamples) {
  Create(Flat(4,
              {.kind = OptimiserKind::kSgd,
               .rate = 1,
               .schedule = {.kind = Schedule::Kind::kStep, .decay = 0.5, .every = 100}}));
  PushOne({.sequence = 1, .kind = UpdateKind::kGradient, .values = ones_});
  EXPECT_EQ(Values(0)[0], -1);
  PushOne({.sequence = 2, .kind = UpdateKind::kGradient, .values = ones_}, kWriter, 100);
  EXPECT_EQ(Values(0)[0], -1.5f);
}

TEST_F(PushTest, ARepeatedPushIsAcknowledgedAndNotAppliedAgain) {
  Create(Flat(4, OnWorker()));
  PushOne(Change(1, ones_));
  const ShardAck again = PushOne(Change(1, ones_));
  EXPECT_EQ(again.outcome, PushOutcome::kDuplicate);
  EXPECT_EQ(Values(0), ones_);
}

TEST_F(PushTest, AGapIsAnsweredWithWhatComesNext) {
  Create(Flat(4, OnWorker()));
  PushOne(Change(1, ones_));
  const ShardAck ack = PushOne(Change(5, ones_));
  EXPECT_EQ(ack.outcome, PushOutcome::kUnexpectedSequence);
  EXPECT_EQ(ack.expected, 2u);
  ShardUpdate after_loss = Change(5, ones_);
  after_loss.after_loss = true;
  EXPECT_EQ(PushOne(after_loss).outcome, PushOutcome::kApplied);
  EXPECT_EQ(PushOne(Change(6, ones_)).outcome, PushOutcome::kApplied);
  EXPECT_EQ(Values(0)[0], 3);
}

TEST_F(PushTest, ANewIncarnationStartsAtOneAndFencesTheOldOne) {
  Create(Flat(4, OnWorker()));
  const WorkerId successor{.slot = kWriter.slot, .incarnation = kWriter.incarnation + 1};
  PushOne(Change(1, ones_));
  EXPECT_EQ(PushOne(Change(2, ones_), successor).expected, 1u);
  EXPECT_EQ(PushOne(Change(1, ones_), successor).outcome, PushOutcome::kApplied);
  EXPECT_EQ(PushOne(Change(2, ones_)).outcome, PushOutcome::kStaleIncarnation);
}

TEST_F(PushTest, AdmittingASuccessorFencesTheOldOneAtOnce) {
  Create(Flat(4, OnWorker()));
  const WorkerId successor{.slot = kWriter.slot, .incarnation = kWriter.incarnation + 1};
  ASSERT_TRUE(server().Admit(kWriter).ok());
  PushOne(Change(1, ones_));
  ASSERT_TRUE(server().Admit(successor).ok());
  EXPECT_EQ(PushOne(Change(2, ones_)).outcome, PushOutcome::kStaleIncarnation);
  EXPECT_EQ(server().Admit(kWriter).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(server().Admit({.slot = 4, .incarnation = 1}).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(PushTest, AWriterThatTheControllerHasGivenUpIsFencedBeforeItsSuccessorComes) {
  Create(Flat(4, OnWorker()));
  ASSERT_TRUE(server().Admit(kWriter).ok());
  PushOne(Change(1, ones_));
  server().RefuseWritersBelow(std::vector<Incarnation>{kWriter.incarnation, 1, 1, 1, 7});
  EXPECT_EQ(PushOne(Change(2, ones_)).outcome, PushOutcome::kApplied);
  server().RefuseWritersBelow(std::vector<Incarnation>{kWriter.incarnation + 1});
  EXPECT_EQ(PushOne(Change(3, ones_)).outcome, PushOutcome::kStaleIncarnation);
  EXPECT_TRUE(absl::IsFailedPrecondition(server().Admit(kWriter)));
  EXPECT_TRUE(server().Admit({.slot = 0, .incarnation = kWriter.incarnation + 1}).ok());
}

TEST_F(PushTest, APushWithOneValueThatIsNotFiniteIsRefusedWhole) {
  ParameterServerOptions options = Flat(4, OnWorker());
  options.parameters.push_back({.name = "b", .layer = "l", .shape = {4}});
  options.optimisers.push_back(OnWorker());
  Create(options);
  for (const float bad : {kNan, kInfinity, -kInfinity}) {
    const std::vector<float> values{1, 1, bad, 1};
    Push push{.writer = kWriter, .updates = {Change(1, ones_), Change(1, values)}};
    push.updates[1].shard = 1;
    for (const ShardAck& ack : PushAll(push)) {
      EXPECT_EQ(ack.outcome, PushOutcome::kNotFinite);
    }
  }
  EXPECT_EQ(Values(0), std::vector<float>(4));
  EXPECT_EQ(PushOne(Change(1, ones_)).outcome, PushOutcome::kApplied);
}

TEST_F(PushTest, WhatDoesNotFitTheShardIsRefused) {
  Create(Flat(4, OnWorker()));
  const std::vector<float> five(5);
  ShardUpdate unknown = Change(1, ones_);
  unknown.shard = 1;
  ShardUpdate gradient = Change(1, ones_);
  gradient.kind = UpdateKind::kGradient;
  ShardUpdate product = Change(1, {});
  product.kind = UpdateKind::kOuterProduct;
  for (const ShardUpdate& update :
       {Change(1, five), Change(0, ones_), unknown, gradient, product}) {
    EXPECT_EQ(PushOne(update).outcome, PushOutcome::kMalformed);
  }
  EXPECT_EQ(PushOne(Change(1, ones_), {.slot = 4, .incarnation = 1}).outcome,
            PushOutcome::kMalformed);
}

TEST_F(PushTest, AWorkerWithANewerMapWaitsUntilItIsKnownHere) {
  Create(Flat(4, OnWorker()));
  ShardUpdate update = Change(1, ones_);
  update.configuration_version = rig_->map[0].version + 1;
  EXPECT_EQ(rig_->Push(0, {.writer = kWriter, .updates = {update}})->at(0).outcome,
            PushOutcome::kNotReady);
  update.configuration_version = 0;  // an older one still names this primary
  EXPECT_EQ(rig_->Push(0, {.writer = kWriter, .updates = {update}})->at(0).outcome,
            PushOutcome::kApplied);
}

/// A layer of 600 outputs and 500 inputs: its second shard begins within a row.
class OuterProductPushTest : public ServerFixture {
 protected:
  static constexpr std::size_t kRows = 6;
  static constexpr std::size_t kInputs = 500;
  static constexpr std::size_t kOutputs = 600;

  void SetUp() override {
    Rng rng(1);
    for (std::vector<float>* values : {&activations_, &errors_}) {
      for (float& value : *values) {
        value = static_cast<float>(rng.Normal());
      }
    }
  }

  ParameterServerOptions Layer(OptimiserKind kind) {
    ParameterServerOptions options =
        Flat(1, {.kind = kind, .rate = 0.1, .momentum = 0.9, .epsilon = 0.1});
    options.parameters[0].shape = {std::int64_t{kOutputs}, std::int64_t{kInputs}};
    return options;
  }

  Push PushOfKind(UpdateKind kind) {
    Push push{.writer = kWriter};
    for (const ShardId shard : {0u, 1u}) {
      push.updates.push_back({.shard = shard, .sequence = 1, .kind = kind});
    }
    push.operands = {{.tensor = 0,
                      .rows = kRows,
                      .inputs = kInputs,
                      .outputs = kOutputs,
                      .activations = activations_,
                      .errors = errors_}};
    return push;
  }

  std::vector<float> activations_ = std::vector<float>(kRows * kInputs);
  std::vector<float> errors_ = std::vector<float>(kRows * kOutputs);
};

TEST_F(OuterProductPushTest, EqualsTheDenseGradientWithinRounding) {
  std::vector<float> dense(kOutputs * kInputs);
  for (std::size_t n = 0; n < kRows; ++n) {
    for (std::size_t k = 0; k < dense.size(); ++k) {
      dense[k] += errors_[n * kOutputs + k / kInputs] * activations_[n * kInputs + k % kInputs];
    }
  }
  for (const OptimiserKind kind :
       {OptimiserKind::kSgd, OptimiserKind::kMomentum, OptimiserKind::kAdagrad}) {
    std::vector<float> values[2];
    for (const bool as_product : {false, true}) {
      rig_.emplace(1);
      Create(Layer(kind));
      ASSERT_EQ(server().layout().shards().size(), 2u);
      ASSERT_NE(server().layout().shards()[1].begin % kInputs, 0u);
      Push push = PushOfKind(as_product ? UpdateKind::kOuterProduct : UpdateKind::kGradient);
      for (ShardUpdate& update : push.updates) {
        const Shard& shard = server().layout().shards()[update.shard];
        if (!as_product) {
          update.values = std::span(dense).subspan(shard.begin, shard.size());
        }
      }
      for (const ShardAck& ack : PushAll(push)) {
        EXPECT_EQ(ack.outcome, PushOutcome::kApplied);
      }
      values[as_product] = Values(0);
      const std::vector<float> rest = Values(1);
      values[as_product].insert(values[as_product].end(), rest.begin(), rest.end());
    }
    for (std::size_t i = 0; i < dense.size(); ++i) {
      ASSERT_NEAR(values[0][i], values[1][i], 1e-5) << i;
    }
  }
}

TEST_F(OuterProductPushTest, OperandsThatDoNotFitAreRefused) {
  Create(Layer(OptimiserKind::kSgd));
  const auto refused = [&](auto change) {
    Push push = PushOfKind(UpdateKind::kOuterProduct);
    change(push);
    return PushAll(push)[0].outcome;
  };
  EXPECT_EQ(refused([](Push& p) { p.operands[0].rows = 7; }), PushOutcome::kMalformed);
  EXPECT_EQ(refused([](Push& p) { p.operands[0].tensor = 1; }), PushOutcome::kMalformed);
  EXPECT_EQ(refused([](Push& p) { p.updates[0].operands = 1; }), PushOutcome::kMalformed);
  EXPECT_EQ(refused([](Push& p) { std::swap(p.operands[0].inputs, p.operands[0].outputs); }),
            PushOutcome::kMalformed);
}

TEST_F(OuterProductPushTest, ProductsThatOverflowAreRefusedWhole) {
  Create(Layer(OptimiserKind::kSgd));
  const std::vector<float> before = Values(0);
  activations_[3] = 1e30f;
  errors_[4] = -1e30f;
  for (const ShardAck& ack : PushAll(PushOfKind(UpdateKind::kOuterProduct))) {
    EXPECT_EQ(ack.outcome, PushOutcome::kNotFinite);
  }
  errors_[4] = kNan;
  for (const ShardAck& ack : PushAll(PushOfKind(UpdateKind::kOuterProduct))) {
    EXPECT_EQ(ack.outcome, PushOutcome::kNotFinite);
  }
  EXPECT_EQ(Values(0), before);
}

}  // namespace
}  // namespace adamant::parameter_server
