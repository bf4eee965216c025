#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "services/common/rpc/frame.h"

namespace adamant::conformance {

/// A transport under test.
class FrameTransport {
 public:
  virtual ~FrameTransport() = default;

  /// Serves every stream with `handler`. Called once, before the others.
  virtual void Serve(rpc::FrameHandler handler, std::uint64_t max_message_bytes) = 0;

  virtual std::unique_ptr<rpc::FrameStream> Connect() = 0;

  /// Breaks the open streams and waits for their handlers.
  virtual void StopServer() = 0;

  /// Opens a stream whose only message is these bytes.
  virtual void SendRaw(const std::string& message) = 0;
};

struct FrameTransportFactory {
  std::string name;
  std::function<std::unique_ptr<FrameTransport>()> make;
};

/// What every transport of frames must do. Instantiate it with a factory:
///   INSTANTIATE_TEST_SUITE_P(Grpc, FrameStreamSuite, testing::Values(factory));
class FrameStreamSuite : public testing::TestWithParam<FrameTransportFactory> {
 protected:
  void SetUp() override { transport_ = GetParam().make(); }

  std::unique_ptr<FrameTransport> transport_;
};

inline void PrintTo(const FrameTransportFactory& factory, std::ostream* out) {
  *out << factory.name;
}

}  // namespace adamant::conformance
