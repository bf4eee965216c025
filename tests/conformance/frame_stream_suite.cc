#include "tests/conformance/frame_stream_suite.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "services/common/base/rng.h"
#include "services/common/rpc/wire.h"

namespace adamant::conformance {
namespace {

using rpc::FrameStream;
using rpc::IncomingFrame;
using rpc::LentBytes;
using rpc::OutgoingFrame;
using Bytes = std::vector<std::byte>;

constexpr std::uint64_t kMaxMessageBytes = std::uint64_t{16} << 20;

std::shared_ptr<const Bytes> RandomBytes(std::size_t size, std::uint64_t seed) {
  auto bytes = std::make_shared<Bytes>(size);
  Rng rng(seed);
  std::generate(bytes->begin(), bytes->end(), [&] { return std::byte(rng() & 0xff); });
  return bytes;
}

OutgoingFrame MakeFrame(std::string header, const std::shared_ptr<const Bytes>& payload) {
  return {std::move(header), {LentBytes{*payload, payload}}};
}

Bytes PayloadOf(const IncomingFrame& frame) {
  Bytes all;
  for (const auto& chunk : frame.chunks()) {
    all.insert(all.end(), chunk.begin(), chunk.end());
  }
  return all;
}

// Sends back what it receives, in place, until the client has no more.
absl::Status Echo(FrameStream& stream) {
  while (true) {
    absl::StatusOr<IncomingFrame> received = stream.Read();
    if (!received.ok()) {
      return absl::IsOutOfRange(received.status()) ? absl::OkStatus() : received.status();
    }
    const auto frame = std::make_shared<IncomingFrame>(*std::move(received));
    OutgoingFrame reply{std::string(frame->header()), {}};
    for (const auto& chunk : frame->chunks()) {
      reply.payload.push_back({chunk, frame});
    }
    if (absl::Status status = stream.Write(std::move(reply)); !status.ok()) {
      return status;
    }
  }
}

// Delivers how the server's first Read on any stream came out.
class FirstRead {
 public:
  rpc::FrameHandler handler() {
    return [this](FrameStream& stream) {
      const absl::Status status = stream.Read().status();
      result_.set_value(status);
      return status;
    };
  }
  absl::Status Wait() { return result_.get_future().get(); }

 private:
  std::promise<absl::Status> result_;
};

TEST_P(FrameStreamSuite, PayloadsOfEverySizeArriveIntact) {
  transport_->Serve(Echo, kMaxMessageBytes);
  const auto stream = transport_->Connect();
  for (const std::size_t size : {0, 1, 3, 4, 7, 22, 23, 24, 4095, 65537, 1 << 20, 8 << 20}) {
    SCOPED_TRACE(size);
    const auto sent = RandomBytes(size, size);
    ASSERT_TRUE(stream->Write(MakeFrame("size " + std::to_string(size), sent)).ok());
    const auto received = stream->Read();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_EQ(received->header(), "size " + std::to_string(size));
    EXPECT_EQ(received->payload_bytes(), size);
    EXPECT_TRUE(PayloadOf(*received) == *sent);
  }
}

TEST_P(FrameStreamSuite, EmptyAndLargeHeadersArriveIntact) {
  transport_->Serve(Echo, kMaxMessageBytes);
  const auto stream = transport_->Connect();
  for (const std::size_t size : {0, 1, 100'000}) {
    const std::string header(size, 'h');
    ASSERT_TRUE(stream->Write({header, {}}).ok());
    const auto received = stream->Read();
    ASSERT_TRUE(received.ok()) << received.status();
    EXPECT_TRUE(received->header() == header) << size;
    EXPECT_EQ(received->payload_bytes(), 0u);
  }
}

TEST_P(FrameStreamSuite, PiecesOfOddLengthsArriveAsOnePayload) {
  transport_->Serve(Echo, kMaxMessageBytes);
  const auto stream = transport_->Connect();
  const auto whole = RandomBytes(200'003, 5);
  OutgoingFrame frame{"pieces", {}};
  std::span<const std::byte> rest(*whole);
  for (std::size_t size = 0; !rest.empty(); size = size * 2 + 1) {  // 0, 1, 3, 7, …
    const auto piece = rest.first(std::min(size, rest.size()));
    frame.payload.push_back({piece, whole});
    rest = rest.subspan(piece.size());
  }
  ASSERT_TRUE(stream->Write(std::move(frame)).ok());
  const auto received = stream->Read();
  ASSERT_TRUE(received.ok()) << received.status();
  EXPECT_TRUE(PayloadOf(*received) == *whole);
}

TEST_P(FrameStreamSuite, PayloadReaderCrossesChunks) {
  transport_->Serve(Echo, kMaxMessageBytes);
  const auto stream = transport_->Connect();
  auto values = std::make_shared<std::vector<float>>(300'001);
  std::iota(values->begin(), values->end(), 1.0F);
  ASSERT_TRUE(stream->Write({"odd", {{std::as_bytes(std::span(*values)), values}}}).ok());
  const auto received = stream->Read();
  ASSERT_TRUE(received.ok()) << received.status();

  rpc::PayloadReader reader(*received);
  Bytes scratch;
  std::size_t at = 0;
  for (std::size_t floats = 1; at < values->size();
       floats = std::min(2 * floats + 1, values->size() - at)) {
    const auto view = reader.View(floats * sizeof(float), scratch);
    ASSERT_TRUE(view.ok()) << view.status();
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(view->data()) % alignof(float), 0u);
    const std::span got(reinterpret_cast<const float*>(view->data()), floats);
    ASSERT_TRUE(
        std::equal(got.begin(), got.end(), values->begin() + static_cast<std::ptrdiff_t>(at)));
    at += floats;
  }
  EXPECT_EQ(reader.remaining(), 0u);
  EXPECT_TRUE(absl::IsOutOfRange(reader.View(1, scratch).status()));
}

TEST_P(FrameStreamSuite, FramesArriveInTheOrderSent) {
  transport_->Serve(Echo, kMaxMessageBytes);
  const auto stream = transport_->Connect();
  constexpr int kFrames = 2000;
  std::jthread writer([&] {
    for (int i = 0; i < kFrames; ++i) {
      const auto payload = RandomBytes(static_cast<std::size_t>(i) % 5000, 1);
      EXPECT_TRUE(stream->Write(MakeFrame(std::to_string(i), payload)).ok());
    }
    stream->CloseWrites();
  });
  for (int i = 0; i < kFrames; ++i) {
    const auto received = stream->Read();
    ASSERT_TRUE(received.ok()) << received.status();
    ASSERT_EQ(received->header(), std::to_string(i));
    ASSERT_EQ(received->payload_bytes(), static_cast<std::size_t>(i) % 5000);
  }
  EXPECT_TRUE(absl::IsOutOfRange(stream->Read().status()));
}

TEST_P(FrameStreamSuite, StreamsDoNotDisturbEachOther) {
  transport_->Serve(Echo, kMaxMessageBytes);
  std::vector<std::jthread> clients;
  for (std::uint64_t client = 0; client < 6; ++client) {
    clients.emplace_back([this, client] {
      const auto stream = transport_->Connect();
      for (int i = 0; i < 20; ++i) {
        const auto sent = RandomBytes(100'000 + client, client * 100 + i);
        ASSERT_TRUE(stream->Write(MakeFrame("x", sent)).ok());
        const auto received = stream->Read();
        ASSERT_TRUE(received.ok()) << received.status();
        ASSERT_TRUE(PayloadOf(*received) == *sent);
      }
    });
  }
}

TEST_P(FrameStreamSuite, LentBytesAreReturned) {
  transport_->Serve(Echo, kMaxMessageBytes);
  auto payload = RandomBytes(3 << 20, 9);
  const std::weak_ptr<const Bytes> watch = payload;
  {
    const auto stream = transport_->Connect();
    ASSERT_TRUE(stream->Write(MakeFrame("x", std::exchange(payload, nullptr))).ok());
    ASSERT_TRUE(stream->Read().ok());
  }
  transport_->StopServer();
  transport_.reset();
  while (!watch.expired()) {  // transports may free on a thread of theirs; a leak is a timeout
    std::this_thread::yield();
  }
}

TEST_P(FrameStreamSuite, SlowReaderHoldsTheWriterBack) {
  std::promise<void> go;
  std::atomic<int> read = 0;
  transport_->Serve(
      [&, ready = go.get_future().share()](FrameStream& stream) {
        ready.wait();
        while (stream.Read().ok()) {
          ++read;
        }
        return absl::OkStatus();
      },
      kMaxMessageBytes);
  const auto stream = transport_->Connect();
  constexpr int kFrames = 64;
  const auto payload = RandomBytes(4 << 20, 2);
  auto writer = std::async(std::launch::async, [&] {
    for (int i = 0; i < kFrames; ++i) {
      EXPECT_TRUE(stream->Write(MakeFrame("x", payload)).ok());
    }
    stream->CloseWrites();
  });
  // A transport without limits would swallow all 256 MB in this time.
  EXPECT_EQ(writer.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  go.set_value();
  writer.get();
  EXPECT_TRUE(absl::IsOutOfRange(stream->Read().status()));
  EXPECT_EQ(read, kFrames);
}

TEST_P(FrameStreamSuite, HandlersErrorReachesTheClient) {
  transport_->Serve(
      [](FrameStream& stream) {
        EXPECT_TRUE(stream.Read().ok());
        return absl::FailedPreconditionError("no such job");
      },
      kMaxMessageBytes);
  const auto stream = transport_->Connect();
  ASSERT_TRUE(stream->Write({"hello", {}}).ok());
  const absl::Status status = stream->Read().status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_NE(status.message().find("no such job"), std::string_view::npos) << status;
  while (stream->Write({"again", {}}).ok()) {  // until the writer notices too
  }
  EXPECT_TRUE(absl::IsUnavailable(stream->Write({"again", {}})));
}

TEST_P(FrameStreamSuite, HandlerThatReturnsEndsTheStreamInOrder) {
  transport_->Serve(
      [](FrameStream& stream) {
        EXPECT_TRUE(stream.Read().ok());
        return stream.Write({"last", {}});
      },
      kMaxMessageBytes);
  const auto stream = transport_->Connect();
  ASSERT_TRUE(stream->Write({"hello", {}}).ok());
  const auto last = stream->Read();
  ASSERT_TRUE(last.ok()) << last.status();
  EXPECT_EQ(last->header(), "last");
  EXPECT_TRUE(absl::IsOutOfRange(stream->Read().status()));
  EXPECT_TRUE(absl::IsOutOfRange(stream->Read().status()));
}

TEST_P(FrameStreamSuite, CancelWakesAReaderOnBothSides) {
  std::promise<absl::Status> server_saw;
  transport_->Serve(
      [&](FrameStream& stream) {
        EXPECT_TRUE(stream.Read().ok());
        EXPECT_TRUE(stream.Write({"ready", {}}).ok());
        server_saw.set_value(stream.Read().status());
        return absl::OkStatus();
      },
      kMaxMessageBytes);
  const auto stream = transport_->Connect();
  ASSERT_TRUE(stream->Write({"hello", {}}).ok());
  ASSERT_TRUE(stream->Read().ok());
  auto reader = std::async(std::launch::async, [&] { return stream->Read().status(); });
  stream->Cancel();
  EXPECT_TRUE(absl::IsCancelled(reader.get()));
  EXPECT_FALSE(server_saw.get_future().get().ok());
  EXPECT_FALSE(stream->Write({"late", {}}).ok());
}

TEST_P(FrameStreamSuite, AServerThatIsBusyLearnsThatTheClientHasLeft) {
  std::promise<bool> read;
  std::promise<bool> before;
  std::promise<void> learnt;
  transport_->Serve(
      [&](FrameStream& stream) {
        read.set_value(stream.Read().ok());
        before.set_value(stream.Cancelled());
        while (!stream.Cancelled()) {
          std::this_thread::yield();
        }
        learnt.set_value();
        return absl::OkStatus();
      },
      kMaxMessageBytes);
  const auto stream = transport_->Connect();
  ASSERT_TRUE(stream->Write(MakeFrame("x", RandomBytes(1, 1))).ok());
  EXPECT_TRUE(read.get_future().get());
  EXPECT_FALSE(before.get_future().get());
  EXPECT_FALSE(stream->Cancelled());
  stream->Cancel();
  learnt.get_future().get();
  EXPECT_TRUE(stream->Cancelled());
}

TEST_P(FrameStreamSuite, ServerCanCancel) {
  transport_->Serve(
      [&](FrameStream& stream) {
        EXPECT_TRUE(stream.Read().ok());
        stream.Cancel();
        EXPECT_FALSE(stream.Read().ok());
        return absl::CancelledError("stopped");
      },
      kMaxMessageBytes);
  const auto stream = transport_->Connect();
  ASSERT_TRUE(stream->Write({"hello", {}}).ok());
  EXPECT_TRUE(absl::IsCancelled(stream->Read().status()));
}

TEST_P(FrameStreamSuite, StoppingTheServerBreaksOpenStreams) {
  transport_->Serve(Echo, kMaxMessageBytes);
  const auto stream = transport_->Connect();
  ASSERT_TRUE(stream->Write({"hello", {}}).ok());
  ASSERT_TRUE(stream->Read().ok());
  auto reader = std::async(std::launch::async, [&] { return stream->Read().status(); });
  transport_->StopServer();
  const absl::Status status = reader.get();
  EXPECT_TRUE(absl::IsCancelled(status) || absl::IsUnavailable(status)) << status;
}

TEST_P(FrameStreamSuite, MessageThatIsNoFrameIsDataLoss) {
  FirstRead first;
  transport_->Serve(first.handler(), kMaxMessageBytes);
  transport_->SendRaw("GET / HTTP/1.1");
  EXPECT_TRUE(absl::IsDataLoss(first.Wait()));
}

TEST_P(FrameStreamSuite, OtherFormatVersionIsDataLossAndNamesBoth) {
  FirstRead first;
  transport_->Serve(first.handler(), kMaxMessageBytes);
  std::string message = rpc::EncodeFront("header");
  message[3] = 2;
  transport_->SendRaw(message);
  const absl::Status status = first.Wait();
  EXPECT_TRUE(absl::IsDataLoss(status));
  EXPECT_NE(status.message().find("version 2"), std::string_view::npos) << status;
  EXPECT_NE(status.message().find("version 1"), std::string_view::npos) << status;
}

TEST_P(FrameStreamSuite, TruncatedHeaderIsDataLoss) {
  FirstRead first;
  transport_->Serve(first.handler(), kMaxMessageBytes);
  std::string message = rpc::EncodeFront("header");
  message.pop_back();
  transport_->SendRaw(message);
  EXPECT_TRUE(absl::IsDataLoss(first.Wait()));
}

TEST_P(FrameStreamSuite, MessageShorterThanItsPrefixIsDataLoss) {
  FirstRead first;
  transport_->Serve(first.handler(), kMaxMessageBytes);
  transport_->SendRaw("ADM\1");
  EXPECT_TRUE(absl::IsDataLoss(first.Wait()));
}

TEST_P(FrameStreamSuite, OversizedFrameIsRefused) {
  FirstRead first;
  transport_->Serve(first.handler(), 1 << 20);
  const auto stream = transport_->Connect();
  // The writer may notice at once or later; the reader learns why.
  stream->Write(MakeFrame("big", RandomBytes(2 << 20, 3))).IgnoreError();
  EXPECT_TRUE(absl::IsResourceExhausted(stream->Read().status()));
  const absl::Status server_saw = first.Wait();
  EXPECT_FALSE(server_saw.ok());
}

}  // namespace
}  // namespace adamant::conformance
