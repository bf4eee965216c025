// adamant-operator: leads the TrainingJobs of a Kubernetes cluster.

#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>

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

namespace adamant {
namespace {

constexpr int kFailed = 1;
constexpr int kBadFlags = 2;
constexpr std::chrono::milliseconds kProbe{500};

struct Flags {
  kube::ConfigFlags config;
  std::string name_space;
  std::string identity;
  std::string control_listen = "[::]:7070";
  std::string metrics_listen = "[::]:8080";
  std::string probes_listen = "[::]:8081";
  kube::PodSettings pods;
};

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--kubeconfig", flags.config.kubeconfig, "How to reach the cluster")
      ->description("File that says how to reach the cluster [that of a pod, or ~/.kube/config]");
  app.add_option("--context", flags.config.context, "Which of its contexts");
  app.add_option("--namespace", flags.name_space, "Namespace of the operators' lease")->required();
  app.add_option("--identity", flags.identity, "Name among the operators [the host's name]");
  app.add_option("--control-listen", flags.control_listen, "Address of control streams")
      ->capture_default_str();
  app.add_option("--control-service",
                 flags.pods.control_service,
                 "Where pods find the operators: HOST:PORT, ...")
      ->required();
  app.add_option("--metrics-listen", flags.metrics_listen, "Address of /metrics")
      ->capture_default_str();
  app.add_option("--probes-listen", flags.probes_listen, "Address of /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--image", flags.pods.image, "Image of the jobs' pods")->required();
}

sigset_t BlockStopSignals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  return set;
}

absl::Status Run(const Flags& flags, const sigset_t& stop_signals) {
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
  JobMetrics job_metrics(registry, clock);
  const auto connection = kube::MakeTransport(config, credentials);
  kube::MeteredTransport transport(*connection, operator_metrics, clock);
  const kube::Client client(transport, clock, sleeper, {.rate = 400, .burst = 800});
  kube::Operator op(client,
                    kube::Client(transport, clock, sleeper),
                    clock,
                    sleeper,
                    {.name_space = flags.name_space,
                     .identity = flags.identity.empty() ? HostName() : flags.identity,
                     .control_listen = flags.control_listen,
                     .pods = flags.pods,
                     .observer = &operator_metrics,
                     .job_observer = &job_metrics});
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
  CLI::App app("Leads the TrainingJobs of a Kubernetes cluster.", "adamant-operator");
  Flags flags;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadFlags;
  }
  InitLog("operator", LogLevel::kInfo);
  const sigset_t stop_signals = BlockStopSignals();  // before any thread starts
  rpc::RouteGrpcLog();
  if (const absl::Status status = Run(flags, stop_signals); !status.ok()) {
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
