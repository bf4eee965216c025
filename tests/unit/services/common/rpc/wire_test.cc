#include "services/common/rpc/wire.h"

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "services/common/base/rng.h"

namespace adamant::rpc {
namespace {

absl::StatusOr<IncomingFrame> Decode(const std::string& message, std::size_t piece_bytes) {
  const auto owner = std::make_shared<const std::string>(message);
  std::vector<std::span<const std::byte>> pieces;
  const auto all = std::as_bytes(std::span(*owner));
  for (std::size_t at = 0; at < all.size(); at += piece_bytes) {
    pieces.push_back(all.subspan(at, std::min(piece_bytes, all.size() - at)));
  }
  return DecodeFrame(std::move(pieces), owner);
}

TEST(WireTest, FrameSurvivesAnyCutting) {
  const std::string message = EncodeFront("header") + "payload";
  for (std::size_t piece_bytes = 1; piece_bytes <= message.size(); ++piece_bytes) {
    const auto frame = Decode(message, piece_bytes);
    ASSERT_TRUE(frame.ok()) << frame.status();
    EXPECT_EQ(frame->header(), "header");
    std::string payload;
    for (const auto& chunk : frame->chunks()) {
      EXPECT_FALSE(chunk.empty());
      payload.append(reinterpret_cast<const char*>(chunk.data()), chunk.size());
    }
    EXPECT_EQ(payload, "payload");
  }
}

TEST(WireTest, FormatIsStable) { EXPECT_EQ(EncodeFront("ab"), std::string("ADM\1\2\0\0\0ab", 10)); }

TEST(WireTest, EveryTruncationOfTheFrontIsDataLoss) {
  const std::string front = EncodeFront("header");
  for (std::size_t size = 0; size < front.size(); ++size) {
    EXPECT_TRUE(absl::IsDataLoss(Decode(front.substr(0, size), 3).status())) << size;
  }
}

TEST(WireTest, RandomBytesAreNeverRead) {
  Rng rng(11);
  for (int i = 0; i < 10'000; ++i) {
    std::string message(rng.Below(32), '\0');
    for (char& c : message) {
      c = static_cast<char>(rng());
    }
    const auto frame = Decode(message, 1 + rng.Below(8));
    EXPECT_TRUE(frame.ok() || absl::IsDataLoss(frame.status()));
  }
}

TEST(PayloadReaderTest, RefusesMoreThanIsLeftAndConsumesNothing) {
  const auto frame = Decode(EncodeFront("") + "12345678", 100);
  ASSERT_TRUE(frame.ok());
  PayloadReader reader(*frame);
  std::vector<std::byte> scratch;
  EXPECT_TRUE(absl::IsOutOfRange(reader.View(9, scratch).status()));
  EXPECT_TRUE(absl::IsOutOfRange(reader.View(std::uint64_t{1} << 60, scratch).status()));
  EXPECT_EQ(reader.remaining(), 8u);
  std::string out(8, ' ');
  EXPECT_TRUE(reader.Read(std::as_writable_bytes(std::span(out))).ok());
  EXPECT_EQ(out, "12345678");
}

TEST(JoinPayloadTest, APayloadInPiecesBecomesOneAlignedPiece) {
  for (const std::size_t chunk : {1, 3, 9, 100}) {
    for (const std::string payload : {"", "12345678", "odd"}) {
      auto frame = Decode(EncodeFront("header") + payload, chunk);
      ASSERT_TRUE(frame.ok());
      const LentBytes joined = JoinPayload(*std::move(frame));
      EXPECT_EQ(
          std::string(reinterpret_cast<const char*>(joined.bytes.data()), joined.bytes.size()),
          payload);
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(joined.bytes.data()) % alignof(float), 0u);
    }
  }
}

TEST(JoinPayloadTest, WhatIsOneAlignedPieceStaysInPlace) {
  const auto owner = std::make_shared<const std::vector<float>>(4, 1.0F);
  const std::string front = EncodeFront("");
  auto frame =
      DecodeFrame({std::as_bytes(std::span(front)), std::as_bytes(std::span(*owner))}, owner);
  ASSERT_TRUE(frame.ok());
  const LentBytes joined = JoinPayload(*std::move(frame));
  EXPECT_EQ(joined.bytes.data(), std::as_bytes(std::span(*owner)).data());
  EXPECT_GT(owner.use_count(), 1);
}

}  // namespace
}  // namespace adamant::rpc
