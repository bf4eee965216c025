#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/adamant/v1/control.pb.h"
#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/base/ids.h"
#include "tests/fakes/exchange_client.h"
#include "tests/fakes/fake_controller.h"

namespace adamant::parameter_server {

/// The real program, one parameter server of a job, with a controller of its own that the test
/// plays, and its disk.
/// Threads: one at a time.
class ServerProcess {
 public:
  static constexpr std::uint64_t kJobUid = 7;
  static constexpr std::uint32_t kBuckets = 3;
  static constexpr std::size_t kShardElements = 250;  // shard 0: conv1.weight of adam-mnist

  explicit ServerProcess(std::uint32_t slot);
  ~ServerProcess();

  /// Starts the program and lets it join a job with this many copies, under the next incarnation;
  /// returns when it has told what its disk holds.
  void Start(std::uint32_t copies = 1);

  /// Sends a signal and returns the exit code, or minus the signal.
  int Signal(int signal);
  void SendSignal(int signal) const;
  int WaitForExit();

  /// Waits for the next message, heartbeats aside. It must be there.
  v1::MemberMessage Receive();

  void Send(const v1::Membership& membership);
  fakes::FakeController& controller() { return *controller_; }

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] v1::ServerId server() const;
  [[nodiscard]] v1::Member member() const;
  [[nodiscard]] const v1::StoredBuckets& stored() const { return stored_; }
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] const std::string& replication_address() const { return replication_address_; }
  [[nodiscard]] const std::string& metrics_address() const { return metrics_address_; }
  [[nodiscard]] const std::filesystem::path& folder() const { return folder_; }

  /// A stream as workers open one. `job`: that it names before its hello; "": none, as workers of
  /// earlier states.
  [[nodiscard]] std::unique_ptr<rpc::FrameStream> OpenExchange(
      const std::string& job = std::to_string(kJobUid)) const;

  /// Opens the stream that Push and Fetch use, as a worker.
  void Connect();

  /// Adds one to every weight of shard 0; again and again while the bucket is not ready.
  v1::ShardAck Push(Sequence sequence, ConfigurationVersion version = 1);

  /// Shard 0, as soon as the bucket is ready.
  struct Value {
    v1::ShardValue header;
    std::vector<float> values;
  };
  Value Fetch(std::uint64_t snapshot = 0);

 private:
  fakes::ExchangeClient::Reply Call(const v1::ExchangeRequest& request,
                                    const std::vector<float>& values);

  const std::uint32_t slot_;
  const std::filesystem::path folder_;
  std::unique_ptr<fakes::FakeController> controller_;
  pid_t pid_ = 0;
  Incarnation incarnation_ = 0;
  std::string address_;
  std::string replication_address_;
  std::string metrics_address_;
  v1::StoredBuckets stored_;
  std::unique_ptr<fakes::ExchangeClient> client_;
};

}  // namespace adamant::parameter_server
