#include "services/data_server/rpc/fetch_data.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <thread>
#include <utility>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/fetch/fetch.h"
#include "services/common/service/service.h"

namespace adamant::data_server {
namespace {

constexpr std::chrono::seconds kTellInterval{5};
constexpr std::chrono::milliseconds kLookInterval{100};  // whether the process is to end

// Tells the log and the controller how a fetch goes.
class Reporter final : public fetch::FetchObserver {
 public:
  Reporter(const std::string& url, const Clock& clock, service::ControllerLink& controller)
      : url_(url), clock_(clock), controller_(controller) {}

  bool OnProgress(const fetch::DownloadProgress& progress) override {
    if (progress.bytes != bytes_ && fails_) {
      fails_ = false;
      next_ = {};  // which is news
    }
    bytes_ = progress.bytes;
    if (const Clock::TimePoint now = clock_.Now(); now >= next_ && !fails_) {
      next_ = now + kTellInterval;
      const std::string text = ToString(progress);
      LogInfo("fetching", {{"url", url_}, {"progress", text}});
      Tell(text);
    }
    return !controller_.stopping();
  }

  bool WaitToRetry(const absl::Status& why, std::chrono::milliseconds time) override {
    const std::string reason(why.message());
    LogWarning("fetch broken off, to be tried again",
               {{"why", reason}, {"milliseconds", time.count()}});
    fails_ = true;
    Tell("to be tried again: " + reason);
    const Clock::TimePoint end = clock_.Now() + time;
    while (clock_.Now() < end && !controller_.stopping()) {
      std::this_thread::sleep_for(kLookInterval);
    }
    return !controller_.stopping();
  }

  void OnFetched() {
    if (std::exchange(fails_, false)) {  // in one piece since
      Tell("done");
    }
  }

 private:
  void Tell(const std::string& text) {
    controller_.Send(protocol::Loading{.what = "fetching " + url_ + ": " + text, .fails = fails_});
  }

  const std::string& url_;
  const Clock& clock_;
  service::ControllerLink& controller_;
  Clock::TimePoint next_{};
  std::uint64_t bytes_ = 0;  // that were there at last
  bool fails_ = false;       // nothing has come since the last try broke off
};

absl::Status Explain(const absl::Status& status, const std::string& field) {
  if (absl::IsCancelled(status)) {
    return status;
  }
  const std::string message(status.message());
  if (absl::IsDataLoss(status)) {
    return absl::DataLossError(field + ".sha256: " + message +
                               "; has the file changed since the sum was taken?");
  }
  return {status.code(), field + ".url: " + message};
}

}  // namespace

absl::StatusOr<std::string> FetchData(const v1::Download& download,
                                      const std::string& field,
                                      const std::filesystem::path& folder,
                                      service::ControllerLink& controller) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::filesystem::space_info space =
      error ? std::filesystem::space_info{} : std::filesystem::space(folder, error);
  if (error) {
    return SystemError(error.value(), "cannot use the folder", folder);
  }
  const SystemClock clock;
  const std::filesystem::path target = folder / download.sha256();
  Reporter reporter(download.url(), clock, controller);
  ADAMANT_RETURN_IF_ERROR(
      Explain(fetch::FetchFile({.url = download.url(), .sha256 = download.sha256()},
                               target,
                               {.max_bytes = space.available},
                               clock,
                               reporter),
              field));
  reporter.OnFetched();
  LogInfo("fetched", {{"url", download.url()}, {"path", target.string()}});
  return target.string();
}

}  // namespace adamant::data_server
