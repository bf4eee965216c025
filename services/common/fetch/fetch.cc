#include "services/common/fetch/fetch.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "services/common/base/status_macros.h"
#include "services/common/fetch/partial_file.h"
#include "services/common/fetch/transfer.h"

namespace adamant::fetch {
namespace {

// A server may not make us wait longer.
constexpr std::chrono::milliseconds kLongestWait = std::chrono::minutes(5);

std::string Bytes(double bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit + 1 < kUnits.size(); ++unit) {
    bytes /= 1000;
  }
  std::array<char, 32> text = {};
  std::snprintf(text.data(),
                text.size(),
                bytes < 10 && unit > 0 ? "%.1f %s" : "%.0f %s",
                bytes,
                kUnits[unit]);
  return text.data();
}

// One file on its way.
class Fetch final : public TransferSink {
 public:
  Fetch(const RemoteFile& remote,
        PartialFile file,
        const FetchOptions& options,
        const Clock& clock,
        FetchObserver& observer)
      : remote_(remote),
        file_(std::move(file)),
        options_(options),
        clock_(clock),
        observer_(observer),
        backoff_(options.backoff, std::hash<std::string>()(remote.url)),
        begun_(clock.Now()) {}

  absl::Status Run() {
    while (true) {
      ADAMANT_RETURN_IF_ERROR(GetAll());
      if (file_.Sum() == remote_.sha256) {
        return file_.Finish();
      }
      const bool of_one_piece = !resumed_;
      const absl::Status wrong =
          absl::DataLossError(remote_.url + ": expected SHA-256 " + remote_.sha256 + ", found " +
                              file_.Sum() + " (" + std::to_string(file_.size()) + " bytes)");
      ADAMANT_RETURN_IF_ERROR(file_.Restart());
      if (of_one_piece) {
        file_.Remove();
        return wrong;
      }
      resumed_ = false;  // its pieces may be of two files
    }
  }

 private:
  // Tries until all bytes are here.
  absl::Status GetAll() {
    for (int failures = 0;;) {
      received_ = 0;
      const TransferResult result = Transfer({.url = remote_.url,
                                              .offset = file_.size(),
                                              .authorities = options_.authorities,
                                              .stall_timeout = options_.stall_timeout},
                                             *this);
      if (result.status.ok() || absl::IsCancelled(result.status) || refused_) {
        return result.status;
      }
      if (result.out_of_range && file_.size() > 0) {  // what is here is not of this file
        ADAMANT_RETURN_IF_ERROR(file_.Restart());
        continue;
      }
      if (!absl::IsUnavailable(result.status)) {
        return About(result.status);
      }
      if (received_ > 0) {
        failures = 0;
        backoff_.Reset();
      }
      if (++failures >= options_.tries) {
        return About(result.status);
      }
      if (!observer_.WaitToRetry(About(result.status), WaitOf(result))) {
        return absl::CancelledError("the fetch was ended");
      }
    }
  }

  std::chrono::milliseconds WaitOf(const TransferResult& result) {
    const std::chrono::milliseconds own = backoff_.Next();
    return std::min(
        result.retry_after ? std::max<std::chrono::milliseconds>(own, *result.retry_after) : own,
        kLongestWait);
  }

  [[nodiscard]] absl::Status About(const absl::Status& status) const {
    return {status.code(), remote_.url + ": " + std::string(status.message())};
  }

  absl::Status TooLarge(const std::string& size) {
    return absl::InvalidArgumentError("the file has " + size + " bytes, and there is room for " +
                                      std::to_string(options_.max_bytes));
  }

  absl::Status Begin(std::uint64_t offset, std::optional<std::uint64_t> total) override {
    total_ = total;
    if (total && *total > options_.max_bytes) {
      return TooLarge(std::to_string(*total));
    }
    if (offset == 0 && file_.size() > 0) {
      return KeepOwn(file_.Restart());
    }
    resumed_ = offset > 0;
    return absl::OkStatus();
  }

  absl::Status Append(std::string_view bytes) override {
    if (bytes.size() > options_.max_bytes - std::min(options_.max_bytes, file_.size())) {
      return TooLarge("more than " + std::to_string(file_.size()));
    }
    received_ += bytes.size();
    received_in_all_ += bytes.size();
    return KeepOwn(file_.Append(bytes));
  }

  bool GoOn() override {
    const std::chrono::duration<double> passed = clock_.Now() - begun_;
    DownloadProgress progress{.bytes = file_.size(), .total = total_};
    if (passed.count() > 0) {
      progress.bytes_per_second = static_cast<double>(received_in_all_) / passed.count();
    }
    if (total_ && *total_ >= file_.size() && progress.bytes_per_second > 0) {
      const double left = static_cast<double>(*total_ - file_.size()) / progress.bytes_per_second;
      progress.left = std::chrono::seconds(std::llround(std::min(left, 1e9)));
    }
    return observer_.OnProgress(progress);
  }

  // An error of this machine's disk is not about the server.
  absl::Status KeepOwn(const absl::Status& status) {
    refused_ = !status.ok();
    return status;
  }

  const RemoteFile& remote_;
  PartialFile file_;
  const FetchOptions& options_;
  const Clock& clock_;
  FetchObserver& observer_;
  Backoff backoff_;
  const Clock::TimePoint begun_;

  std::optional<std::uint64_t> total_;
  std::uint64_t received_ = 0;         // in this try
  std::uint64_t received_in_all_ = 0;  // by this fetch
  bool resumed_ = false;               // what is here did not come in one piece
  bool refused_ = false;               // by the disk
};

}  // namespace

std::string ToString(const DownloadProgress& progress) {
  std::string text = Bytes(static_cast<double>(progress.bytes));
  if (progress.total && *progress.total > 0) {
    const double share = static_cast<double>(progress.bytes) / static_cast<double>(*progress.total);
    text = std::to_string(static_cast<int>(100 * share)) + " % of " +
           Bytes(static_cast<double>(*progress.total));
  }
  text += ", " + Bytes(progress.bytes_per_second) + "/s";
  if (progress.left) {
    text += ", " + std::to_string(progress.left->count()) + " s left";
  }
  return text;
}

absl::Status FetchFile(const RemoteFile& file,
                       const std::filesystem::path& target,
                       const FetchOptions& options,
                       const Clock& clock,
                       FetchObserver& observer) {
  const absl::StatusOr<std::string> there = SumOf(target);
  if (there.ok() && *there == file.sha256) {
    return absl::OkStatus();
  }
  ADAMANT_ASSIGN_OR_RETURN(PartialFile partial, PartialFile::Open(target));
  return Fetch(file, std::move(partial), options, clock, observer).Run();
}

}  // namespace adamant::fetch
