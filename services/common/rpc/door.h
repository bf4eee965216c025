#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "services/common/base/mutex.h"
#include "services/common/base/system/listen.h"

struct sockaddr_storage;

namespace adamant::rpc {

/// Takes the connections to a port in place of gRPC, and bounds what strangers cost: connections on
/// which nobody has named the server's job. gRPC bounds neither their number nor what they send
/// before a call is refused, and stops listening for good when the process has no files left. The
/// last files that the process may open it leaves to others: 64, of few a quarter.
/// Threads: any; has two of its own. One hands connections over and may be held up there, as gRPC
/// reads at once what has come; the other cuts what holds it up.
class Door {
 public:
  struct Limits {
    std::size_t most_strangers = 64;
    std::uint64_t most_bytes = std::uint64_t{64} << 10;  ///< that one has sent
    std::uint64_t most_bytes_together = std::uint64_t{8} << 20;

    /// Time that each has before the next may take its place: members name their job within it.
    std::chrono::milliseconds least_time{50};
    std::chrono::milliseconds most_time{5'000};
  };

  /// Takes over the socket of a new connection. Called on the door's thread.
  using Handler = std::function<void(int socket)>;

  /// Takes over the listener. Connections wait until Open.
  Door(Listener listener, const Limits& limits);
  ~Door();  // as Close
  Door(const Door&) = delete;
  Door& operator=(const Door&) = delete;

  /// host:port with the port in use.
  [[nodiscard]] const std::string& address() const { return listener_.address; }

  /// Begins to take connections. Called once.
  void Open(Handler handler);

  /// The connection from `peer`, as gRPC calls it, is no stranger any more.
  void Admit(std::string_view peer);

  /// Takes no more connections; when it returns the handler is not called any more. Those that are
  /// there stay.
  void Close();

 private:
  using TimePoint = std::chrono::steady_clock::time_point;

  struct Stranger {
    std::string peer;  // KeyOf
    int socket;        // of our own, beside the handler's
    TimePoint since;
    std::uint64_t bytes;  // received
  };

  void Take();
  void Watch();
  void Look() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeAll();
  bool LetIn(int socket, const sockaddr_storage& peer);
  bool HasRoom();
  void CutOldest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // Constant after Open.
  const Listener listener_;
  const Limits limits_;
  Handler handler_;

  std::atomic<bool> closed_ = false;
  Mutex mutex_;
  std::vector<Stranger> strangers_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  bool takes_ ABSL_GUARDED_BY(mutex_) = true;
  CondVar changed_;  // the first stranger came, or takes_

  Mutex closing_;  // held by whoever waits for the threads
  std::thread taker_;
  std::thread watcher_;
};

}  // namespace adamant::rpc
