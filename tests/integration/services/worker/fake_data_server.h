#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "proto/adamant/v1/data_server.pb.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/server.h"
#include "tests/integration/services/worker/parameter_server_here.h"

namespace adamant::worker {

/// A data server played by the test: dispatches batches of noise (28x28) in order as the window
/// allows, until one is handed back (DispatchAgain: that one too), and answers every result.
/// Threads: any.
class FakeDataServer {
 public:
  FakeDataServer();

  [[nodiscard]] const std::string& address() const { return server_->address(); }
  void BreakStreams() { streams_.BreakAll(); }

  /// How inputs are normalised; before a worker comes.
  void SetChannels(int channels) { channels_ = channels; }

  /// From now on what is handed back is dispatched again, as a data server does; else a batch that
  /// comes back means that the worker stops.
  void DispatchAgain();

  /// Dispatches `batches` more training batches.
  void Dispatch(std::uint32_t batches);

  /// Dispatches `batches` validation batches for the snapshot.
  void DispatchValidation(std::uint32_t batches, std::uint64_t snapshot);

  void CloseEpoch(DataEpoch epoch);

  /// Waits until this many batches are acknowledged.
  void AwaitAcknowledged(std::size_t batches);
  void AwaitEvaluated(std::size_t batches);

  /// Waits until the stream has ended.
  void AwaitEnd();

  [[nodiscard]] std::size_t acknowledged();
  [[nodiscard]] std::size_t handed_back();
  [[nodiscard]] std::size_t dispatched();  ///< different batches
  [[nodiscard]] std::size_t out();         ///< neither acknowledged nor handed back since

 private:
  /// How often each batch came back, by index.
  using Counts = std::map<std::uint32_t, int>;

  absl::Status Serve(rpc::FrameStream& stream);
  void Handle(const v1::WorkRequest& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void DispatchSome() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SendBatch(const v1::Lease& lease, std::uint64_t snapshot)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Send(const v1::WorkReply& reply, std::vector<rpc::LentBytes> payload = {})
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  int channels_ = 1;
  OpenStreams streams_;
  Mutex mutex_;
  CondVar changed_;
  rpc::FrameStream* stream_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::uint32_t window_ ABSL_GUARDED_BY(mutex_) = 0;
  bool dispatches_again_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint32_t batches_ ABSL_GUARDED_BY(mutex_) = 0;
  std::set<std::uint32_t> dispatched_ ABSL_GUARDED_BY(mutex_);
  std::uint64_t next_lease_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<std::uint32_t> to_dispatch_ ABSL_GUARDED_BY(mutex_);      // last first
  std::map<std::uint64_t, std::uint32_t> out_ ABSL_GUARDED_BY(mutex_);  // batch by lease
  Counts acknowledged_ ABSL_GUARDED_BY(mutex_);
  Counts handed_back_ ABSL_GUARDED_BY(mutex_);
  Counts evaluated_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<rpc::Server> server_;
};

}  // namespace adamant::worker
