#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/ids.h"
#include "services/common/rpc/frame.h"

namespace adamant::fakes {

/// A worker's end of an Exchange stream that waits for every answer.
/// Threads: one at a time.
class ExchangeClient {
 public:
  explicit ExchangeClient(std::unique_ptr<rpc::FrameStream> stream) : stream_(std::move(stream)) {}

  struct Reply {
    v1::ExchangeReply header;
    std::vector<float> values;  ///< the payload
  };

  /// Sends a request with `values` as its payload and waits for the answer.
  absl::StatusOr<Reply> Call(v1::ExchangeRequest request, std::vector<float> values = {});

  /// The first message, in format version 1. Returns why it was refused; empty if it was not.
  absl::StatusOr<std::string> Hello(std::uint64_t job_uid,
                                    std::uint32_t slot,
                                    Incarnation incarnation);

  [[nodiscard]] rpc::FrameStream& stream() { return *stream_; }

 private:
  std::unique_ptr<rpc::FrameStream> stream_;
  std::uint64_t last_id_ = 0;
};

}  // namespace adamant::fakes
