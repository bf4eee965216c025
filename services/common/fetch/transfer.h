#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace adamant::fetch {

/// Request to a web server.
struct TransferRequest {
  std::string url;            ///< http or https
  std::uint64_t offset = 0;   ///< first byte that is wanted
  std::string authorities{};  ///< PEM file of those that are trusted; empty: the system's
  std::chrono::seconds connect_timeout{20};
  std::chrono::seconds stall_timeout{60};  ///< without a byte
};

/// Takes what a transfer brings.
/// Threads: called on the thread of Transfer.
class TransferSink {
 public:
  virtual ~TransferSink() = default;

  /// The file's bytes follow, from `offset` on: from the one asked for, or from 0. `total`: the
  /// file's size, where the server says it. Not OK: nothing more is wanted.
  virtual absl::Status Begin(std::uint64_t offset, std::optional<std::uint64_t> total) = 0;

  virtual absl::Status Append(std::string_view bytes) = 0;

  /// Called about once a second, and more often while bytes come. False: the transfer is to end.
  virtual bool GoOn() = 0;
};

/// Outcome of a transfer.
struct TransferResult {
  absl::Status status;
  bool out_of_range = false;                             ///< the file ends before the offset
  std::optional<std::chrono::seconds> retry_after = {};  ///< that the server asked for
};

/// Gets a file's bytes, once. At most 5 redirections are followed, from https to https only. The
/// server's certificate is verified always. Sends no credentials; proxies are taken from the
/// environment.
/// Threads: any; blocks.
/// Errors: Unavailable for what may be cured by another try, InvalidArgument for what will not;
/// Cancelled when the sink did not want to go on; those of the sink. They do not repeat the URL.
TransferResult Transfer(const TransferRequest& request, TransferSink& sink);

}  // namespace adamant::fetch
