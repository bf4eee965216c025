#include "services/parameter_server/rpc/peers/peer_stream.h"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/replication.pb.h"
#include "services/common/base/mutex.h"
#include "tests/fakes/in_memory_frame_stream.h"

namespace adamant::parameter_server {
namespace {

constexpr BackoffOptions kFast{.initial = std::chrono::milliseconds(1),
                               .max = std::chrono::milliseconds(2)};

/// The peer: takes the streams that are opened to it.
class Peer {
 public:
  std::unique_ptr<rpc::FrameStream> Connect() {
    fakes::InMemoryLink link;
    const MutexLock lock(mutex_);
    arrived_.push_back(link.TakeServer());
    changed_.NotifyAll();
    return link.TakeClient();
  }

  /// Waits for the next stream and answers its hello.
  std::unique_ptr<rpc::FrameStream> Accept(const std::string& refusal = "") {
    std::unique_ptr<rpc::FrameStream> stream = Wait();
    EXPECT_EQ(stream->Read()->header(), "hello");
    v1::ReplicationHelloReply reply;
    reply.set_refused(refusal);
    EXPECT_TRUE(stream->Write({.header = reply.SerializeAsString(), .payload = {}}).ok());
    return stream;
  }

  void OnOpen() {
    const MutexLock lock(mutex_);
    ++opened_;
    changed_.NotifyAll();
  }

  void WaitForOpen(int times) {
    const MutexLock lock(mutex_);
    while (opened_ < times) {
      changed_.Wait(mutex_);
    }
  }

 private:
  std::unique_ptr<rpc::FrameStream> Wait() {
    const MutexLock lock(mutex_);
    while (arrived_.empty()) {
      changed_.Wait(mutex_);
    }
    std::unique_ptr<rpc::FrameStream> stream = std::move(arrived_.front());
    arrived_.pop_front();
    return stream;
  }

  Mutex mutex_;
  CondVar changed_;
  std::deque<std::unique_ptr<rpc::FrameStream>> arrived_ ABSL_GUARDED_BY(mutex_);
  int opened_ ABSL_GUARDED_BY(mutex_) = 0;
};

class PeerStreamTest : public testing::Test {
 protected:
  static PeerMessage Ack(Lsn lsn) {
    return {.configuration_version = 1, .kind = PrepareAck{.acked = lsn}};
  }

  /// The lsns in the next message batch.
  static std::vector<Lsn> Receive(rpc::FrameStream& stream) {
    const auto frame = stream.Read();
    EXPECT_TRUE(frame.ok()) << frame.status();
    v1::MessageBatch message_batch;
    EXPECT_TRUE(message_batch.ParseFromString(std::string(frame->header())));
    std::vector<Lsn> lsns;
    for (const v1::PeerMessage& message : message_batch.messages()) {
      lsns.push_back(message.prepare_ack().acked());
    }
    return lsns;
  }

  Peer peer_;
  metrics::Registry registry_;
  const PeerMetrics metrics_{registry_};
  PeerStream stream_{{.name = "control to parameter-server-1#1",
                      .hello = "hello",
                      .connect = [this] { return peer_.Connect(); },
                      .on_open = [this] { peer_.OnOpen(); },
                      .backoff = kFast},
                     metrics_};
};

TEST_F(PeerStreamTest, MessagesArriveInOrder) {
  const auto server = peer_.Accept();
  peer_.WaitForOpen(1);
  for (Lsn lsn = 1; lsn <= 100; ++lsn) {
    stream_.Send(Ack(lsn));
  }
  Lsn last = 0;
  while (last < 100) {
    for (const Lsn lsn : Receive(*server)) {
      EXPECT_EQ(lsn, ++last);
    }
  }
}

TEST_F(PeerStreamTest, WhatIsSentBeforeTheHelloIsAnsweredIsDropped) {
  stream_.Send(Ack(1));
  const auto server = peer_.Accept();
  peer_.WaitForOpen(1);
  stream_.Send(Ack(2));
  EXPECT_EQ(Receive(*server), std::vector<Lsn>{2});
}

TEST_F(PeerStreamTest, ABrokenStreamIsOpenedAgainWithoutWhatWaited) {
  auto server = peer_.Accept();
  peer_.WaitForOpen(1);
  server->Cancel();
  server = peer_.Accept();
  peer_.WaitForOpen(2);
  EXPECT_TRUE(stream_.IsOpen());
  stream_.Send(Ack(7));
  EXPECT_EQ(Receive(*server), std::vector<Lsn>{7});
}

TEST_F(PeerStreamTest, ARefusedStreamTriesAgain) {
  const auto refused = peer_.Accept("another job");
  const auto server = peer_.Accept();
  peer_.WaitForOpen(1);
  EXPECT_TRUE(stream_.IsOpen());
}

TEST_F(PeerStreamTest, StopEndsAStreamThatWaitsForThePeer) {
  const auto server = peer_.Accept();
  stream_.Stop();
  EXPECT_EQ(server->Read().status().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace adamant::parameter_server
