#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "services/common/base/ids.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::parameter_server {

class BucketRecords;

/// The real program, as several parameter servers of one job, which replicate over loopback; their
/// controller is this process. Server 0 is primary of all buckets, the others are members.
class ServerProcesses {
 public:
  static constexpr std::uint64_t kJobUid = 1;

  /// Returns when every bucket has all its copies. `manifest`: of the job.
  ServerProcesses(std::uint32_t servers, const std::string& manifest);
  ~ServerProcesses();

  /// Where server 0 takes training traffic.
  [[nodiscard]] const std::string& address() const;

  /// Of all buckets.
  [[nodiscard]] ConfigurationVersion version() const { return version_; }

  [[nodiscard]] const ShardLayout& layout() const { return *layout_; }

  /// Processor time of all servers since their start, in seconds.
  [[nodiscard]] double CpuSeconds() const;

 private:
  class Server;

  void Publish();

  std::unique_ptr<ShardLayout> layout_;
  std::unique_ptr<BucketRecords> records_;
  std::vector<std::unique_ptr<Server>> servers_;
  ConfigurationVersion version_ = 0;
};

}  // namespace adamant::parameter_server
