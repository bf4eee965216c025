#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/server.h"

namespace adamant::fakes {

/// A controller for one member at a time, over real gRPC: the test plays its part.
/// Threads: any.
class FakeController {
 public:
  /// `address`: where to listen; the default lets the kernel choose.
  /// `security`: none: plain text.
  explicit FakeController(const std::string& address = "127.0.0.1:0",
                          std::optional<rpc::ServerSecurity> security = {});
  ~FakeController();

  [[nodiscard]] const std::string& address() const { return server_->address(); }

  /// Waits for the member's next message (Join, …); heartbeats are passed over. Nothing when its
  /// stream has ended.
  std::optional<v1::MemberMessage> Receive();

  /// Waits for a heartbeat that came after the last call.
  v1::Heartbeat ReceiveHeartbeat();

  /// Sends to the member that is attending.
  void Send(const v1::ControllerMessage& message);

  /// Sends Welcome.
  void Welcome(std::uint64_t term, Incarnation incarnation, std::uint64_t job_uid);

  /// What it answers to GetTerm.
  void SetTerm(std::uint64_t term);

  /// Breaks the member's stream.
  void Break();

 private:
  class Attendance;

  std::unique_ptr<Attendance> attendance_;
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace adamant::fakes
