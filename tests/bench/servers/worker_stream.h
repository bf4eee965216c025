#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/rpc/frame.h"

namespace adamant::parameter_server {

/// A worker's stream to a parameter server that need not wait for an answer before the next
/// request.
/// Threads: one at a time.
class WorkerStream {
 public:
  explicit WorkerStream(const std::string& address, std::uint64_t job_uid = 1);
  ~WorkerStream();

  void Send(const v1::ExchangeRequest& request, std::vector<rpc::LentBytes> payload);

  /// Waits for the next answer; its header must say that all went well. Returns the payload's size.
  std::uint64_t Receive();

  /// Sends a push again and again until all of it is applied.
  void PushUntilApplied(const v1::ExchangeRequest& push,
                        const std::vector<rpc::LentBytes>& payload);

 private:
  v1::ExchangeReply ReceiveReply(std::uint64_t& payload_bytes);

  std::unique_ptr<rpc::FrameStream> stream_;
};

}  // namespace adamant::parameter_server
