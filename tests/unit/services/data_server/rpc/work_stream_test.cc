#include "services/data_server/rpc/work_stream.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/metrics/metrics.h"
#include "tests/fakes/in_memory_frame_stream.h"

namespace adamant::data_server {
namespace {

BatchBuilder::SharedDataset MakeSet() {
  dataset::Dataset set{.channels = 1, .height = 1, .width = 2, .images = {}, .labels = {}};
  for (std::uint8_t i = 0; i < 10; ++i) {
    set.labels.push_back(i);
    set.images.insert(set.images.end(), 2, i);
  }
  return std::make_shared<const dataset::Dataset>(std::move(set));
}

class WorkStreamTest : public testing::Test {
 protected:
  v1::WorkReply Read(std::string* payload = nullptr) {
    absl::StatusOr<rpc::IncomingFrame> frame = client_->Read();
    v1::WorkReply reply;
    EXPECT_TRUE(frame.ok()) << frame.status();
    if (frame.ok()) {
      EXPECT_TRUE(reply.ParseFromString(std::string(frame->header())));
      if (payload != nullptr) {
        payload->resize(frame->payload_bytes());
        EXPECT_TRUE(rpc::PayloadReader(*frame)
                        .Read(std::as_writable_bytes(std::span(payload->data(), payload->size())))
                        .ok());
      }
    }
    return reply;
  }

  static Dispatch Validation(std::uint32_t index) {
    return {.to = {},
            .lease = {.batch = {.kind = WorkKind::kEvaluate, .epoch = 1, .index = index}, .id = 9},
            .job_examples = 70,
            .snapshot = 4};
  }

  metrics::Registry registry_;
  const DataMetrics metrics_{registry_};
  const BatchBuilder builder_{{.batch_size = 4}, MakeSet(), MakeSet()};
  BatchPipeline pipeline_{{.train_examples = 10}, builder_, metrics_};
  fakes::InMemoryLink link_;
  std::unique_ptr<rpc::FrameStream> client_ = link_.TakeClient();
  std::unique_ptr<rpc::FrameStream> server_ = link_.TakeServer();
  WorkStream work_{*server_, pipeline_, metrics_};
};

TEST_F(WorkStreamTest, WritesWhatIsQueuedInOrderWithLabelsAndImages) {
  std::jthread writer([this] { EXPECT_TRUE(work_.Run().ok()); });
  work_.AnswerHello("", {.mean = {1.5f}, .deviation = {2.5f}});
  EXPECT_TRUE(work_.AwaitAdmission());
  work_.Send(Validation(2));
  v1::WorkReply drained;
  drained.mutable_drained()->set_epoch(3);
  work_.Send(drained.SerializeAsString());
  work_.Close();
  const v1::WorkReply hello = Read();
  EXPECT_EQ(hello.hello().refused(), "");
  EXPECT_EQ(hello.hello().deviation(0), 2.5f);
  std::string payload;
  const v1::WorkReply batch = Read(&payload);
  EXPECT_EQ(batch.batch().lease().id(), 9u);
  EXPECT_EQ(batch.batch().lease().kind(), v1::EVALUATE);
  EXPECT_EQ(batch.batch().snapshot(), 4u);
  EXPECT_EQ(batch.batch().job_examples(), 70u);
  ASSERT_EQ(batch.batch().labels_size(), 2);
  EXPECT_EQ(batch.batch().labels(1), 9u);
  EXPECT_EQ(payload, std::string("\x08\x08\x09\x09"));
  EXPECT_EQ(Read().drained().epoch(), 3u);
}

TEST_F(WorkStreamTest, RefusalIsWrittenAndEndsTheWait) {
  work_.AnswerHello("not today", {});
  EXPECT_FALSE(work_.AwaitAdmission());
  work_.Close();
  EXPECT_TRUE(work_.Run().ok());
  EXPECT_EQ(Read().hello().refused(), "not today");
}

TEST_F(WorkStreamTest, CancelBreaksTheStreamAndEndsTheWriter) {
  std::jthread writer([this] { (void)work_.Run(); });
  work_.Cancel();
  EXPECT_FALSE(work_.AwaitAdmission());
  EXPECT_FALSE(client_->Read().ok());
  work_.Detach();
  server_.reset();
  work_.Cancel();  // does not touch the stream any more
}

}  // namespace
}  // namespace adamant::data_server
