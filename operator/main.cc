// adamant-operator: leads the TrainingJobs of a Kubernetes cluster.

#include <signal.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <variant>

#include "operator/certificate_metrics.h"
#include "operator/flags.h"
#include "operator/job_metrics.h"
#include "operator/kube/job/operator.h"
#include "operator/kube_client/auth/config.h"
#include "operator/kube_client/http/http_transport.h"
#include "operator/kube_client/http/metered_transport.h"
#include "operator/operator_metrics.h"
#include "services/common/base/clock.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/process.h"
#include "services/common/http/probes.h"
#include "services/common/metrics/exposer.h"
#include "services/common/metrics/metrics.h"
#include "services/common/rpc/grpc_log.h"
#include "services/common/rpc/tls/failed_handshakes.h"
#include "services/common/rpc/tls/tls13.h"

namespace adamant {
namespace {

constexpr int kFailed = 1;
constexpr std::chrono::milliseconds kProbe{500};

sigset_t BlockStopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

absl::Status Run(const OperatorFlags& flags, const sigset_t& stop_signals) {
  SystemClock clock;
  kube::SystemSleeper sleeper;
  metrics::Registry registry;
  ADAMANT_ASSIGN_OR_RETURN(const auto exposer,
                           metrics::Exposer::Start(flags.metrics_listen, registry));
  ADAMANT_ASSIGN_OR_RETURN(const auto probes, http::Probes::Start(flags.probes_listen));
  probes->Answer("/healthz", true);
  ADAMANT_ASSIGN_OR_RETURN(const kube::Config config,
                           kube::LoadConfig(flags.config, kube::ProcessEnvironment()));
  kube::Credentials credentials(config, clock);
  OperatorMetrics operator_metrics(registry);
  CertificateMetrics certificate_metrics(registry, flags.options.security.has_value());
  std::optional<rpc::FailedHandshakes> handshakes;
  if (flags.options.security) {
    handshakes.emplace(registry);
  }
  JobMetrics job_metrics(registry, clock);
  const auto connection = kube::MakeTransport(config, credentials);
  kube::MeteredTransport transport(*connection, operator_metrics, clock);
  const kube::Client client(transport, clock, sleeper, {.rate = 400, .burst = 800});
  kube::OperatorOptions options = flags.options;
  options.observer = &operator_metrics;
  options.job_observer = &job_metrics;
  if (options.security) {
    options.security->observer = &certificate_metrics;
  }
  kube::Operator op(client, kube::Client(transport, clock, sleeper), clock, sleeper, options);
  op.Start();
  const timespec wait{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(kProbe).count()};
  while (sigtimedwait(&stop_signals, nullptr, &wait) < 0) {
    probes->Answer("/readyz", op.ready());
    operator_metrics.Look(op);
    job_metrics.Expire();
  }
  probes->Answer("/readyz", false);
  op.Stop();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  const std::variant<OperatorFlags, int> flags = ParseOperatorFlags(argc, argv);
  if (const int* const exit_code = std::get_if<int>(&flags)) {
    return *exit_code;
  }
  InitLog("operator", LogLevel::kInfo);
  rpc::RequireTls13();                               // before any thread starts, as below
  const sigset_t stop_signals = BlockStopSignals();  // before any thread starts
  rpc::RouteGrpcLog();
  if (const absl::Status status = Run(std::get<OperatorFlags>(flags), stop_signals); !status.ok()) {
    LogError("failed", {{"error", std::string(status.message())}});
    return kFailed;
  }
  LogInfo("stopped");
  return 0;
}

}  // namespace
}  // namespace adamant

int main(int argc, char** argv) {
  adamant::PrepareProcess("adamant-operator");
  try {
    return adamant::Main(argc, argv);
  } catch (const std::exception& error) {  // of a library; ours are values
    const char* const hint = adamant::HintAtLimits(error);
    std::fprintf(stderr, "adamant-operator: %s%s\n", error.what(), hint);
    return *hint != '\0' ? adamant::kExitCannotRun : adamant::kFailed;
  }
}
