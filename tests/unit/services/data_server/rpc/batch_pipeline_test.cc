#include "services/data_server/rpc/batch_pipeline.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/metrics/metrics.h"

namespace adamant::data_server {
namespace {

constexpr std::uint32_t kExamples = 200;
constexpr std::uint32_t kBatchSize = 8;
constexpr std::uint32_t kTakers = 4;
constexpr std::uint32_t kBatches = kExamples / kBatchSize;

BatchBuilder::SharedDataset MakeSet() {
  dataset::Dataset set{.channels = 1, .height = 4, .width = 4, .images = {}, .labels = {}};
  for (std::uint32_t i = 0; i < kExamples; ++i) {
    set.labels.push_back(static_cast<std::uint8_t>(i));
    set.images.insert(set.images.end(), 16, static_cast<std::uint8_t>(i));
  }
  return std::make_shared<const dataset::Dataset>(std::move(set));
}

class BatchPipelineTest : public testing::Test {
 protected:
  [[nodiscard]] BatchPipelineOptions Options(unsigned threads, std::uint64_t batches) const {
    return {.threads = threads,
            .cache_bytes = batches * builder_.max_batch_bytes(),
            .seed = 3,
            .train_examples = kExamples};
  }

  static std::vector<BatchId> AllBatches(DataEpoch epoch) {
    std::vector<BatchId> batches;
    for (std::uint32_t index = 0; index < kBatches; ++index) {
      batches.push_back({.epoch = epoch, .index = index});
    }
    return batches;
  }

  // What the batch must be, whoever prepared it.
  void Check(const BatchId& id, const PreparedBatch& batch) const {
    const PreparedBatch expected = builder_.Build(id, EpochOrder(3, id.epoch, kExamples));
    ASSERT_EQ(batch.labels, expected.labels);
    ASSERT_TRUE(std::equal(
        batch.images.begin(), batch.images.end(), expected.images.begin(), expected.images.end()));
  }

  // Takes and checks every kTakers-th batch of the epoch.
  void TakeEvery(BatchPipeline& pipeline, DataEpoch epoch, std::uint32_t first) const {
    for (std::uint32_t index = first; index < kBatches; index += kTakers) {
      const BatchId id{.epoch = epoch, .index = index};
      Check(id, pipeline.Take(id));
    }
  }

  metrics::Registry registry_;
  const DataMetrics metrics_{registry_};
  const BatchBuilder builder_{
      {.seed = 3, .batch_size = kBatchSize, .transforms = {.translate_pixels = 1}},
      MakeSet(),
      MakeSet()};
};

TEST_F(BatchPipelineTest, ManyTakersGetEveryBatchRightWhateverIsPrepared) {
  for (const std::uint64_t cache : {1, 5, 100}) {
    BatchPipeline pipeline(Options(3, cache), builder_, metrics_);
    for (DataEpoch epoch = 1; epoch <= 3; ++epoch) {
      pipeline.Expect(AllBatches(epoch));
      std::vector<std::jthread> takers;
      for (std::uint32_t taker = 0; taker < kTakers; ++taker) {
        takers.emplace_back([&, taker] { TakeEvery(pipeline, epoch, taker); });
      }
    }
  }
}

TEST_F(BatchPipelineTest, BatchThatNobodyExpectedIsPreparedWhenItIsTaken) {
  BatchPipeline pipeline(Options(1, 4), builder_, metrics_);
  const BatchId train{.epoch = 2, .index = 7};
  Check(train, pipeline.Take(train));
  Check(train, pipeline.Take(train));
  const BatchId evaluate{.kind = WorkKind::kEvaluate, .epoch = 2, .index = 1};
  EXPECT_EQ(pipeline.Take(evaluate).labels[0], kBatchSize);
}

TEST_F(BatchPipelineTest, PreparesUpToItsLimitAndDropsEarlierEpochs) {
  BatchPipeline pipeline(Options(2, 5), builder_, metrics_);
  EXPECT_EQ(pipeline.depth(), 5u);
  EXPECT_TRUE(pipeline.Hungry());
  pipeline.Expect(AllBatches(1));
  const std::string full = "adamant_data_server_prepared_batches 5";
  while (registry_.Text().find(full) == std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_FALSE(pipeline.Hungry());
  const BatchId first{.epoch = 1, .index = 0};
  Check(first, pipeline.Take(first));
  pipeline.Expect({{.epoch = 2, .index = 0}});
  while (registry_.Text().find("adamant_data_server_prepared_batches 1") == std::string::npos) {
    std::this_thread::yield();
  }
  EXPECT_TRUE(pipeline.Hungry());
}

TEST_F(BatchPipelineTest, EachBatchThatIsPreparedIsATurn) {
  BatchPipeline pipeline(Options(2, 5), builder_, metrics_);
  pipeline.Expect(AllBatches(1));
  for (const BatchId& batch : AllBatches(1)) {
    pipeline.Take(batch);
  }
  std::uint64_t turns = 0;
  for (const std::uint64_t of_one : pipeline.Turns()) {
    EXPECT_EQ(of_one % 2, 0U) << "nobody is at it any more";
    turns += of_one;
  }
  EXPECT_EQ(turns, 2 * kBatches);
}

}  // namespace
}  // namespace adamant::data_server
