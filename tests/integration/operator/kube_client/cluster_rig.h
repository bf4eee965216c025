#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "operator/kube_client/api/client.h"
#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/auth/credentials.h"
#include "operator/kube_client/base/sleeper.h"
#include "operator/kube_client/http/http_transport.h"
#include "services/common/base/mutex.h"

namespace adamant::kube {

/// How a watch ended.
struct StreamEnd {
  std::string target;
  absl::Status status = absl::OkStatus();
  int lines = 0;
  Clock::Duration silence{};  ///< since its last line, or its beginning
};

/// A Transport between a client and a real one, that can break and that sees how watches end.
/// Threads: any.
class WatchedTransport final : public Transport {
 public:
  explicit WatchedTransport(Transport& transport) : transport_(transport) {}

  absl::StatusOr<HttpResponse> Send(const HttpRequest& request,
                                    const Cancellation& cancellation) override {
    if (broken) {
      return absl::UnavailableError("broken by the test");
    }
    return transport_.Send(request, cancellation);
  }

  absl::StatusOr<HttpResponse> Stream(const HttpRequest& request,
                                      std::chrono::milliseconds idle,
                                      const std::function<bool(std::string_view line)>& on_line,
                                      const Cancellation& cancellation) override {
    StreamEnd end{.target = request.target};
    auto heard = std::chrono::steady_clock::now();
    const auto reader = [&](std::string_view line) {
      heard = std::chrono::steady_clock::now();
      return on_line(line) && ++end.lines < max_lines;
    };
    absl::StatusOr<HttpResponse> response = transport_.Stream(request, idle, reader, cancellation);
    end.status = response.status();
    end.silence = std::chrono::steady_clock::now() - heard;
    const MutexLock lock(mutex_);
    ends_.push_back(std::move(end));
    return response;
  }

  [[nodiscard]] std::vector<StreamEnd> ends() const {
    const MutexLock lock(mutex_);
    return ends_;
  }

  std::atomic<bool> broken = false;
  std::atomic<int> max_lines = 1'000'000;  ///< of one watch, which then ends

 private:
  Transport& transport_;
  mutable Mutex mutex_;
  std::vector<StreamEnd> ends_ ABSL_GUARDED_BY(mutex_);
};

/// The API server of $KUBECONFIG, a client of it, and the faults that $ADAMANT_CLUSTER_TOOL can
/// cause. The tests of a program share one server: each uses a namespace of its own.
class ClusterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto config = LoadConfig({}, ProcessEnvironment());
    ASSERT_TRUE(config.ok()) << config.status();
    credentials_ = std::make_unique<Credentials>(*config, clock_);
    real_ = MakeTransport(*config, *credentials_);
    ns_ = "t" + std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
    const absl::Status created = CreateNamespace();
    ASSERT_TRUE(created.ok()) << created;
  }

  /// By connections of its own, which no test breaks.
  [[nodiscard]] Client NewClient() {
    return {*real_, clock_, sleeper_, {.rate = 1000, .burst = 1000}};
  }

  /// One whose connections a test may break.
  static Client NewClient(WatchedTransport& transport, const Clock& clock, Sleeper& sleeper) {
    return {transport, clock, sleeper, {.rate = 1000, .burst = 1000}};
  }

  /// cluster.py's commands: "stop-api", …
  static void Cause(const std::string& fault) {
    const char* const tool = std::getenv("ADAMANT_CLUSTER_TOOL");
    ASSERT_NE(tool, nullptr);
    ASSERT_EQ(std::system(("python3 '" + std::string(tool) + "' " + fault).c_str()), 0) << fault;
  }

  /// Waits for what must come.
  static bool Await(const std::function<bool()>& condition) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(120);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) {
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

  [[nodiscard]] ObjectKey Key(const std::string& name) const { return {ns_, name}; }

  /// A ConfigMap.
  [[nodiscard]] Json Map(const std::string& name, const std::string& value = "") const;

  SystemClock clock_;
  SystemSleeper sleeper_;
  std::unique_ptr<Credentials> credentials_;
  std::unique_ptr<Transport> real_;
  std::string ns_;

 private:
  absl::Status CreateNamespace();
};

}  // namespace adamant::kube
