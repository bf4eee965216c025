#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "absl/status/statusor.h"
#include "services/common/base/mutex.h"

namespace adamant::rpc {

/// Metadata of a call: the job that it is for. What it says is looked at before anything of the
/// stream is read, so that who names another job costs the server nothing.
inline constexpr char kJobKey[] = "adamant-job";

/// The most bytes of the first message of a stream, which is a hello.
inline constexpr std::uint64_t kMostHelloBytes = 1024;

/// The IP address in what gRPC says of a peer, as CanonicalAddress has it: "10.0.0.7" of
/// "ipv4:10.0.0.7:4711"; empty where there is none.
std::string HostOfPeer(std::string_view peer);

/// InvalidArgument if a first message of so many bytes is no hello.
absl::Status CheckHelloBytes(std::uint64_t bytes);

/// Bounds what streams cost that have not said hello: their number and their time.
/// Threads: any; has one of its own.
class StreamGuard {
 public:
  struct Limits {
    std::size_t most_waiting = 64;                ///< streams that have named a job of the server's
    std::size_t most_unnamed = 16;                ///< streams of programs that name none
    std::chrono::milliseconds hello_time{3'000};  ///< after which a stream is ended
  };

  /// A stream's place among those that have not said hello; gives it back when destroyed.
  /// Threads: one at a time.
  class Place {
   public:
    Place(StreamGuard& guard, std::uint64_t id) : guard_(guard), id_(id) {}
    ~Place() { guard_.Leave(id_); }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;

   private:
    StreamGuard& guard_;
    const std::uint64_t id_;
  };

  explicit StreamGuard(Limits limits);
  ~StreamGuard();
  StreamGuard(const StreamGuard&) = delete;
  StreamGuard& operator=(const StreamGuard&) = delete;

  /// Lets in a stream; `named`: it has named a job of the server's. Unless its place is given back
  /// in time `end` is called, on another thread, under the guard's lock, and must not wait.
  /// Unavailable while there are too many: such a client tries again.
  absl::StatusOr<std::unique_ptr<Place>> Enter(bool named, std::function<void()> end);

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Waiting {
    bool named;
    TimePoint until;
    std::function<void()> end;
  };

  void Leave(std::uint64_t id);
  void Run();

  const Limits limits_;

  Mutex mutex_;
  CondVar changed_;
  bool stop_ ABSL_GUARDED_BY(mutex_) = false;
  std::uint64_t last_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Waiting> waiting_ ABSL_GUARDED_BY(mutex_);  // by age: the oldest first
  std::size_t unnamed_ ABSL_GUARDED_BY(mutex_) = 0;                   // among them

  std::jthread thread_;
};

}  // namespace adamant::rpc
