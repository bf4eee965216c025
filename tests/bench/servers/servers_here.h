#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "services/common/base/ids.h"
#include "services/parameter_server/core/serving/parameter_server.h"

namespace adamant::parameter_server {

/// Parameter servers in this process, each with its threads and listeners, which replicate over
/// loopback gRPC; their disks are memory, and written only to create the buckets. Server 0 is
/// primary of all buckets, the others are members.
class ServersHere {
 public:
  /// `options`: without `self`.
  ServersHere(std::uint32_t servers, const ParameterServerOptions& options);
  ~ServersHere();

  /// Where server 0 takes training traffic.
  [[nodiscard]] const std::string& address() const;

  /// Of all buckets.
  [[nodiscard]] ConfigurationVersion version() const { return version_; }

 private:
  class Controller;
  class Node;

  void Publish(const v1::Membership& membership);

  std::unique_ptr<Controller> controller_;
  std::vector<std::unique_ptr<Node>> nodes_;
  ConfigurationVersion version_ = 0;
};

}  // namespace adamant::parameter_server
