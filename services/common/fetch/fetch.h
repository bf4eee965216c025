#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "services/common/base/backoff.h"
#include "services/common/base/clock.h"

namespace adamant::fetch {

/// A file on a web server.
struct RemoteFile {
  std::string url;     ///< http or https
  std::string sha256;  ///< as it is served: 64 hexadecimal digits in lower case
};

struct FetchOptions {
  std::uint64_t max_bytes = 0;  ///< a larger file is refused
  std::string authorities{};    ///< PEM file of those that are trusted; empty: the system's
  int tries = 10;               ///< in a row that bring nothing, after which it is given up
  BackoffOptions backoff{.initial = std::chrono::seconds(1), .max = std::chrono::seconds(60)};
  std::chrono::seconds stall_timeout{60};  ///< a try ends when no byte has come for this time
};

/// Progress of a fetch.
struct DownloadProgress {
  std::uint64_t bytes = 0;               ///< of the file that are here
  std::optional<std::uint64_t> total{};  ///< the file's size, where it is known
  double bytes_per_second = 0;           ///< since this fetch began
  std::optional<std::chrono::seconds> left{};
};

/// "45 % of 9.9 MB, 3.1 MB/s, 2 s left"
std::string ToString(const DownloadProgress& progress);

/// Party that waits for a fetch. Called on the thread that fetches.
class FetchObserver {
 public:
  virtual ~FetchObserver() = default;

  /// Called about once a second, and more often while bytes come. False: the fetch is to end.
  virtual bool OnProgress(const DownloadProgress& progress) = 0;

  /// A try has failed for this reason. Waits for `time` before the next; false: there is to be
  /// none.
  virtual bool WaitToRetry(const absl::Status& why, std::chrono::milliseconds time) = 0;
};

/// Fetches a file to `target`, whose folder exists. A file with the right sum that is there already
/// is kept. What breaks off is resumed, by the next process too. The file appears whole or not at
/// all.
/// Threads: any, not twice for one target; blocks.
/// Errors: InvalidArgument for what another try will not change (the URL, the server's refusal, its
/// certificate, the file's size); DataLoss for a file with another sum; Unavailable when all tries
/// failed; Cancelled; ResourceExhausted for a full disk; those of the file system. Those about the
/// server begin with the URL.
absl::Status FetchFile(const RemoteFile& file,
                       const std::filesystem::path& target,
                       const FetchOptions& options,
                       const Clock& clock,
                       FetchObserver& observer);

}  // namespace adamant::fetch
