#include "services/parameter_server/rpc/workers/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "tests/fakes/certified_stream.h"
#include "tests/fakes/exchange_client.h"
#include "tests/fakes/in_memory_frame_stream.h"
#include "tests/unit/services/common/security/certified.h"
#include "tests/unit/services/parameter_server/rpc/lone_server.h"

namespace adamant::parameter_server {
namespace {

using ::testing::HasSubstr;

constexpr std::uint64_t kJob = 7;
constexpr std::int64_t kElements = 5000;  // more than one chunk of the fake stream

/// Two shards on the worker's optimiser and a fully connected layer's on the server's.
ParameterServerOptions Options(std::uint32_t buckets) {
  const ParameterOptimiser on_worker{.location = OptimiserLocation::kWorker};
  return {.job_uid = kJob,
          .writers = 2,
          .parameters = {{.name = "a", .layer = "a", .shape = {kElements}},
                         {.name = "b", .layer = "b", .shape = {3}},
                         {.name = "c", .layer = "c", .shape = {2, 3}}},
          .buckets = buckets,
          .optimisers = {on_worker, on_worker, {.rate = 1}}};
}

class ExchangeTest : public ::testing::Test {
 protected:
  explicit ExchangeTest(std::uint32_t buckets = 1) : server_core_(Options(buckets)) {}

  void SetUp() override {
    gate_.Open(server_core_.core());
    thread_ = std::thread([this] {
      link_.Finish(ServeExchange(gate_, members_, metrics_, *server_));
      server_ = nullptr;
    });
  }

  void TearDown() override {
    client_.stream().Cancel();
    thread_.join();
  }

  void Greet() { ASSERT_EQ(client_.Hello(kJob, 0, 1).value(), ""); }

  static v1::ExchangeRequest PushOf(std::initializer_list<ShardId> shards,
                                    v1::UpdateKind kind = v1::WEIGHT_CHANGE) {
    v1::ExchangeRequest request;
    for (const ShardId shard : shards) {
      v1::ShardUpdate& update = *request.mutable_push()->add_updates();
      update.set_shard(shard);
      update.set_bucket_epoch(1);
      update.set_sequence(1);
      update.set_kind(kind);
    }
    return request;
  }

  static v1::ExchangeRequest FetchOf(std::initializer_list<ShardId> shards) {
    v1::ExchangeRequest request;
    for (const ShardId shard : shards) {
      request.mutable_fetch()->add_shards(shard);
    }
    return request;
  }

  metrics::Registry registry_;
  const TrafficMetrics metrics_{registry_};
  LoneServer server_core_;
  CoreGate gate_;
  const service::MemberGenerations members_;  // none: it does without TLS
  fakes::InMemoryLink link_;
  std::unique_ptr<rpc::FrameStream> server_ = link_.TakeServer();
  fakes::ExchangeClient client_{link_.TakeClient()};
  std::thread thread_;
};

TEST_F(ExchangeTest, WhatIsPushedInPiecesIsFetched) {
  Greet();
  std::vector<float> values;
  for (int i = 0; i < kElements + 3; ++i) {
    values.push_back(static_cast<float>(i));
  }
  const auto pushed = client_.Call(PushOf({0, 1}), values);
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  ASSERT_EQ(pushed->header.push().acks_size(), 2);
  EXPECT_EQ(pushed->header.push().acks(0).outcome(), v1::ShardAck::APPLIED);
  EXPECT_EQ(pushed->header.push().acks(1).version(), 1u);

  const auto fetched = client_.Call(FetchOf({0, 1}));
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->values, values);
  ASSERT_EQ(fetched->header.fetch().values_size(), 2);
  EXPECT_EQ(fetched->header.fetch().values(0).outcome(), v1::ShardValue::FOUND);
  EXPECT_EQ(fetched->header.fetch().values(0).elements(), static_cast<std::uint64_t>(kElements));
  EXPECT_EQ(fetched->header.fetch().values(1).included_sequence(), 1u);
  EXPECT_EQ(fetched->header.fetch().values(1).epoch(), 1u);
  EXPECT_EQ(pushed->header.push().acks(1).epoch(), 1u);
  EXPECT_THAT(registry_.Text(),
              HasSubstr("adamant_parameter_server_updates_total{outcome=\"applied\"} 2"));
}

TEST_F(ExchangeTest, OuterProductsAreMultipliedHere) {
  Greet();
  v1::ExchangeRequest request = PushOf({2}, v1::OUTER_PRODUCT);
  v1::Operands& operands = *request.mutable_push()->add_operands();
  operands.set_tensor(2);
  operands.set_rows(1);
  operands.set_inputs(3);
  operands.set_outputs(2);
  const auto pushed = client_.Call(request, {1, 2, 3, /*errors*/ 10, -1});
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->header.push().acks(0).outcome(), v1::ShardAck::APPLIED);
  EXPECT_EQ(client_.Call(FetchOf({2}))->values, (std::vector<float>{-10, -20, -30, 1, 2, 3}));
}

TEST_F(ExchangeTest, PayloadsThatDoNotFitTheHeaderAreRefusedWhole) {
  Greet();
  v1::ExchangeRequest huge = PushOf({2}, v1::OUTER_PRODUCT);
  v1::Operands& operands = *huge.mutable_push()->add_operands();
  operands.set_rows(0xffffffff);
  operands.set_inputs(0xffffffff);
  operands.set_outputs(0xffffffff);
  for (const auto& [request, elements] : {std::pair{PushOf({1}), 2},
                                          std::pair{PushOf({1}), 4},
                                          std::pair{PushOf({9}), 3},
                                          std::pair{PushOf({1, 1}), 3},
                                          std::pair{huge, 6}}) {
    const auto reply = client_.Call(request, std::vector<float>(elements));
    ASSERT_TRUE(reply.ok()) << reply.status();
    ASSERT_GT(reply->header.push().acks_size(), 0);
    for (const v1::ShardAck& ack : reply->header.push().acks()) {
      EXPECT_EQ(ack.outcome(), v1::ShardAck::MALFORMED) << request.DebugString();
    }
  }
}

TEST_F(ExchangeTest, APushThatIsNotFiniteIsRefusedWhole) {
  Greet();
  std::vector<float> values(kElements + 3, 1);
  values.back() = std::numeric_limits<float>::infinity();
  const auto reply = client_.Call(PushOf({0, 1}), values);
  ASSERT_TRUE(reply.ok());
  EXPECT_EQ(reply->header.push().acks(0).outcome(), v1::ShardAck::NOT_FINITE);
  EXPECT_EQ(client_.Call(FetchOf({1}))->values, std::vector<float>(3));
}

TEST_F(ExchangeTest, AnotherFormatVersionIsRefusedNamingBoth) {
  v1::ExchangeRequest hello;
  hello.mutable_hello()->set_format_version(9);
  hello.mutable_hello()->set_job_uid(kJob);
  const auto reply = client_.Call(hello);
  ASSERT_TRUE(reply.ok());
  EXPECT_THAT(reply->header.hello().refused(), HasSubstr("version 1"));
  EXPECT_THAT(reply->header.hello().refused(), HasSubstr("version 9"));
  EXPECT_FALSE(client_.Call(FetchOf({0})).ok()) << "the stream has ended";
}

TEST_F(ExchangeTest, AnotherJobIsRefusedAndNotToldWhichOneIsRight) {
  EXPECT_EQ(*client_.Hello(kJob + 1, 0, 1), "this server is not of the client's job, 8");
}

TEST_F(ExchangeTest, AWriterOfAnotherAttemptIsRefusedAndToldToEnd) {
  v1::ExchangeRequest hello;
  hello.mutable_hello()->set_format_version(1);
  hello.mutable_hello()->set_job_uid(kJob);
  hello.mutable_hello()->set_worker_incarnation(1);
  hello.mutable_hello()->set_attempt(2);
  const auto reply = client_.Call(hello);
  ASSERT_TRUE(reply.ok());
  EXPECT_THAT(reply->header.hello().refused(), HasSubstr("attempt 2"));
  EXPECT_TRUE(reply->header.hello().stale());
}

TEST_F(ExchangeTest, WhoOnlyReadsNeedsNoAttempt) {
  v1::ExchangeRequest hello;
  hello.mutable_hello()->set_format_version(1);
  hello.mutable_hello()->set_job_uid(kJob);
  hello.mutable_hello()->set_read_only(true);
  hello.mutable_hello()->set_attempt(2);
  EXPECT_EQ(client_.Call(hello)->header.hello().refused(), "");
}

TEST_F(ExchangeTest, AStreamBeginsWithHello) {
  EXPECT_EQ(client_.Call(FetchOf({0})).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ExchangeTest, AReadOnlyStreamMayNotPush) {
  v1::ExchangeRequest hello;
  hello.mutable_hello()->set_format_version(1);
  hello.mutable_hello()->set_job_uid(kJob);
  hello.mutable_hello()->set_read_only(true);
  ASSERT_TRUE(client_.Call(hello).ok());
  EXPECT_EQ(client_.Call(FetchOf({1}))->values.size(), 3u);
  EXPECT_EQ(client_.Call(PushOf({1}), {1, 2, 3}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(ExchangeTest, WhatIsLiveIsNoCopy) {
  const auto taken = server_core_.core().TakeSnapshot({.snapshot = 4});
  ASSERT_TRUE(taken.ok()) << taken.status();
  Greet();
  v1::ExchangeRequest fetch = FetchOf({1});
  fetch.mutable_fetch()->add_copies(taken->front().checksum);
  EXPECT_EQ(client_.Call(fetch).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ExchangeTest, ACopyIsFetchedByItsChecksum) {
  const auto taken = server_core_.core().TakeSnapshot({.snapshot = 4});
  ASSERT_TRUE(taken.ok()) << taken.status();
  Greet();
  v1::ExchangeRequest fetch = FetchOf({1});
  fetch.mutable_fetch()->set_snapshot(4);
  fetch.mutable_fetch()->add_copies(taken->front().checksum);
  EXPECT_EQ(client_.Call(fetch)->values, std::vector<float>(3));
  fetch.mutable_fetch()->set_copies(0, taken->front().checksum ^ 1);
  EXPECT_EQ(client_.Call(fetch)->header.fetch().values(0).outcome(),
            v1::ShardValue::NO_SUCH_SNAPSHOT);
  fetch.mutable_fetch()->add_shards(0);
  EXPECT_EQ(client_.Call(fetch).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(ExchangeTest, AServerThatStopsIsUnavailable) {
  Greet();
  gate_.Close();
  EXPECT_EQ(client_.Call(FetchOf({0})).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ExchangeTest, AFlushTellsWhatIsOnDisk) {
  Greet();
  ASSERT_TRUE(client_.Call(PushOf({1}), {1, 2, 3}).ok());
  v1::ExchangeRequest flush;
  flush.mutable_flush()->add_shards(1);
  flush.mutable_flush()->add_shards(99);
  const auto before = client_.Call(flush);
  ASSERT_TRUE(before.ok()) << before.status();
  ASSERT_EQ(before->header.flush().persisted_size(), 2);
  EXPECT_EQ(before->header.flush().persisted(0).sequence(), 0u);
  ASSERT_TRUE(server_core_.core().Flush().ok());
  EXPECT_EQ(client_.Call(flush)->header.flush().persisted(0).sequence(), 1u);
}

/// The bucket of shard 1 has another replica, which never answers: nothing is committed, and a push
/// waits. That of shard 2 has none.
class BlockedExchangeTest : public ExchangeTest {
 protected:
  BlockedExchangeTest() : ExchangeTest(8) {}

  void SetUp() override {
    ParameterServer& core = server_core_.core();
    const auto& shards = core.layout().shards();
    ASSERT_NE(shards[1].bucket, shards[2].bucket);
    std::vector<Configuration> buckets(core.layout().buckets(),
                                       {.version = 2,
                                        .generation = 1,
                                        .primary = core.options().self,
                                        .replicas = {core.options().self},
                                        .created = true});
    buckets[shards[1].bucket].replicas.push_back({.slot = 1, .incarnation = 1});
    core.SetConfigurations(buckets, {});
    ExchangeTest::SetUp();
    Greet();
    Send(PushOf({1}), {1, 1, 1});
    while (core.Progress()[shards[1].bucket].lag == 0) {
      std::this_thread::yield();  // until it is under way
    }
  }

  void Send(const v1::ExchangeRequest& request, std::vector<float> values) {
    const auto lent = std::make_shared<const std::vector<float>>(std::move(values));
    ASSERT_TRUE(client_.stream()
                    .Write({.header = request.SerializeAsString(),
                            .payload = {{std::as_bytes(std::span(*lent)), lent}}})
                    .ok());
  }
};

TEST_F(BlockedExchangeTest, APushThatWaitsHoldsNoOtherBucketUp) {
  v1::ExchangeRequest push = PushOf({2}, v1::GRADIENT);
  const auto pushed = client_.Call(push, std::vector<float>(6, 1));
  ASSERT_TRUE(pushed.ok()) << pushed.status();
  EXPECT_EQ(pushed->header.push().acks(0).outcome(), v1::ShardAck::APPLIED);
  const auto fetched = client_.Call(FetchOf({2}));
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->header.fetch().values(0).included_sequence(), 1u);
}

TEST_F(BlockedExchangeTest, WhatAFetchWouldNotSeeIsNotReady) {
  const auto fetched = client_.Call(FetchOf({1, 2}));
  ASSERT_TRUE(fetched.ok()) << fetched.status();
  EXPECT_EQ(fetched->header.fetch().values(0).outcome(), v1::ShardValue::NOT_READY);
  EXPECT_EQ(fetched->header.fetch().values(1).outcome(), v1::ShardValue::FOUND);
  EXPECT_EQ(fetched->values.size(), 6u);
  EXPECT_THAT(registry_.Text(),
              testing::HasSubstr("\nadamant_parameter_server_fetch_bytes_total 24\n"));
}

TEST_F(BlockedExchangeTest, APushThatLosesItsPrimaryIsAnswered) {
  const ServerId other{.slot = 1, .incarnation = 1};
  server_core_.core().SetConfigurations(
      std::vector<Configuration>(
          8, {.version = 3, .generation = 1, .primary = other, .replicas = {other}}),
      {});
  const auto reply = client_.stream().Read();
  ASSERT_TRUE(reply.ok()) << reply.status();
  v1::ExchangeReply answer;
  ASSERT_TRUE(answer.ParseFromString(std::string(reply->header())));
  ASSERT_EQ(answer.push().acks_size(), 1);
  EXPECT_EQ(answer.push().acks(0).outcome(), v1::ShardAck::NOT_PRIMARY);
}

TEST_F(BlockedExchangeTest, APushThatIsNeverCommittedDoesNotOutliveItsStream) {
  client_.stream().Cancel();
  thread_.join();  // the handler has returned
  thread_ = std::thread([] {});
}

TEST_F(BlockedExchangeTest, APushThatIsNeverCommittedDoesNotKeepTheServerFromStopping) {
  gate_.Close();
  client_.stream().CloseWrites();
  EXPECT_EQ(client_.stream().Read().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ExchangeTest, AnUnknownShardEndsTheStream) {
  Greet();
  EXPECT_EQ(client_.Call(FetchOf({3})).status().code(), absl::StatusCode::kInvalidArgument);
}

// What becomes of a hello of worker 1, whose process is of kWorker's generation, or of one who only
// reads, whose certificate is `peer`'s.
absl::Status GreetAs(const security::PeerIdentity& peer, bool read_only) {
  LoneServer server(Options(1));
  CoreGate gate;
  gate.Open(server.core());
  service::MemberGenerations members;
  members.Set({.role = security::Role::kWorker,
               .slot = 1,
               .incarnation = 1,
               .generation = security::kWorker.generation});
  metrics::Registry registry;
  const TrafficMetrics metrics(registry);
  fakes::InMemoryLink link;
  const auto client = link.TakeClient();
  fakes::CertifiedStream stream(link.TakeServer(), peer);
  v1::ExchangeRequest request;
  request.mutable_hello()->set_format_version(1);
  request.mutable_hello()->set_job_uid(kJob);
  request.mutable_hello()->set_worker_slot(read_only ? 0 : 1);
  request.mutable_hello()->set_worker_incarnation(read_only ? 0 : 1);
  request.mutable_hello()->set_read_only(read_only);
  EXPECT_TRUE(client->Write({.header = request.SerializeAsString(), .payload = {}}).ok());
  client->CloseWrites();
  return ServeExchange(gate, members, metrics, stream);
}

TEST(ExchangeHelloTest, IsThatOfTheCertificate) {
  EXPECT_TRUE(GreetAs(security::As(security::Role::kWorker, 1), false).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(GreetAs(security::As(security::Role::kWorker, 0), false)));
}

TEST(ExchangeHelloTest, WhoWasReplacedIsNotItsSuccessor) {
  security::PeerIdentity peer = security::As(security::Role::kWorker, 1);
  --peer.generation;
  EXPECT_TRUE(absl::IsPermissionDenied(GreetAs(peer, false)));
}

TEST(ExchangeHelloTest, AnExporterOnlyReads) {
  EXPECT_TRUE(GreetAs(security::As(security::Role::kExporter), true).ok());
  EXPECT_TRUE(absl::IsPermissionDenied(GreetAs(security::As(security::Role::kExporter), false)));
}

}  // namespace
}  // namespace adamant::parameter_server
