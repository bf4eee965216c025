#include "operator/kube_client/auth/exec_credentials.h"

#include <algorithm>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/base64.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/base/run_program.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

constexpr std::chrono::seconds kRepeatFailureFor{1};
constexpr std::size_t kMaxQuotedErrors = 2000;

/// In the year 2255: a time in nanoseconds ends in 2262.
constexpr std::time_t kLatestSeconds = 9'000'000'000;

/// An RFC 3339 time: "2026-03-01T12:00:00Z", also with a fraction or an offset.
std::optional<std::chrono::system_clock::time_point> ParseRfc3339(const std::string& text) {
  std::tm fields{};
  const char* rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &fields);
  if (rest == nullptr) {
    return std::nullopt;
  }
  // A plugin may name the year 9999 for a token that never ends.
  const std::time_t seconds = std::clamp<std::time_t>(timegm(&fields), 0, kLatestSeconds);
  const auto time = std::chrono::system_clock::from_time_t(seconds);
  if (*rest == '.') {
    ++rest;
    while (*rest >= '0' && *rest <= '9') {
      ++rest;
    }
  }
  if (std::string_view(rest) == "Z") {
    return time;
  }
  std::tm offset{};
  const char* end = *rest == '+' || *rest == '-' ? strptime(rest + 1, "%H:%M", &offset) : nullptr;
  if (end == nullptr || *end != '\0') {
    return std::nullopt;
  }
  const std::chrono::minutes shift(offset.tm_hour * 60 + offset.tm_min);
  return *rest == '+' ? time - shift : time + shift;
}

/// The text under `name` in `status`, "" if there is none.
absl::StatusOr<std::string> Text(const Json& status, const char* name) {
  const auto field = status.find(name);
  if (field == status.end() || field->is_null()) {
    return "";
  }
  if (!field->is_string()) {
    return absl::FailedPreconditionError(std::string("status.") + name + " is not a text");
  }
  return field->get<std::string>();
}

/// What the plugin wrote to standard error, cut to what fits into a message.
std::string Quoted(const std::string& errors) {
  const std::size_t begin = errors.size() > kMaxQuotedErrors ? errors.size() - kMaxQuotedErrors : 0;
  const std::size_t end = errors.find_last_not_of(" \r\n");
  return end == std::string::npos || end < begin ? "nothing was written to standard error"
                                                 : errors.substr(begin, end + 1 - begin);
}

}  // namespace

absl::StatusOr<ExecCredential> ParseExecCredential(std::string_view text,
                                                   std::string_view api_version) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    return absl::FailedPreconditionError("it did not print a JSON object");
  }
  if (StringAt(root, {"kind"}) != "ExecCredential" ||
      StringAt(root, {"apiVersion"}) != api_version) {
    return absl::FailedPreconditionError("it did not print an ExecCredential of " +
                                         std::string(api_version) +
                                         ", as apiVersion in the kubeconfig asks for");
  }
  const Json* status = Find(root, {"status"});
  if (status == nullptr || !status->is_object()) {
    return absl::FailedPreconditionError("status is missing in what it printed");
  }
  ExecCredential credential;
  ADAMANT_ASSIGN_OR_RETURN(credential.token, Text(*status, "token"));
  ADAMANT_ASSIGN_OR_RETURN(credential.certificate, Text(*status, "clientCertificateData"));
  ADAMANT_ASSIGN_OR_RETURN(credential.key, Text(*status, "clientKeyData"));
  ADAMANT_ASSIGN_OR_RETURN(const std::string expires, Text(*status, "expirationTimestamp"));
  if (credential.certificate.empty() != credential.key.empty()) {
    return absl::FailedPreconditionError(
        "status has only one of clientCertificateData and clientKeyData");
  }
  if (credential.token.empty() && credential.certificate.empty()) {
    return absl::FailedPreconditionError("status has neither a token nor a certificate");
  }
  const bool sendable = std::all_of(
      credential.token.begin(), credential.token.end(), [](char c) { return c > ' ' && c < 127; });
  if (!sendable) {
    return absl::FailedPreconditionError("status.token holds characters that no token has");
  }
  if (!expires.empty()) {
    credential.expires = ParseRfc3339(expires);
    if (!credential.expires) {
      return absl::FailedPreconditionError("status.expirationTimestamp: " + expires +
                                           " is not a time like 2026-03-01T12:00:00Z");
    }
  }
  return credential;
}

std::string ExecInfo(const Config& config, const std::string& authorities) {
  Json spec{{"interactive", false}};
  if (config.exec->provide_cluster_info) {
    Json cluster{{"server", config.server.Url()}};
    if (!config.tls_server_name.empty()) {
      cluster["tls-server-name"] = config.tls_server_name;
    }
    if (config.insecure_skip_tls_verify) {
      cluster["insecure-skip-tls-verify"] = true;
    }
    if (!authorities.empty()) {
      cluster["certificate-authority-data"] = EncodeBase64(authorities);
    }
    if (!config.exec->cluster_config.empty()) {
      cluster["config"] = Json::parse(config.exec->cluster_config, nullptr, false);
    }
    spec["cluster"] = std::move(cluster);
  }
  return DumpJson({{"apiVersion", config.exec->api_version},
                   {"kind", "ExecCredential"},
                   {"spec", std::move(spec)}});
}

ExecCredentials::ExecCredentials(const Config& config, const Clock& clock)
    : config_(config), clock_(clock) {}

bool ExecCredentials::Usable() const {
  if (!last_.ok()) {
    return clock_.Now() - ended_at_ < kRepeatFailureFor;
  }
  const std::shared_ptr<const ExecCredential>& given = *last_;
  return given != nullptr && (!given->expires || clock_.WallNow() < *given->expires);
}

ExecCredentials::Result ExecCredentials::Get(const Cancellation& cancellation) {
  const std::shared_ptr<void> guard = cancellation.OnCancel([this] {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  {
    const MutexLock lock(mutex_);
    while (!Usable() && running_ && !cancellation.cancelled()) {
      changed_.Wait(mutex_);
    }
    if (Usable()) {
      return last_;
    }
    if (cancellation.cancelled()) {
      return absl::CancelledError("cancelled");
    }
    running_ = true;
  }
  Result result = Run(cancellation);
  const MutexLock lock(mutex_);
  running_ = false;
  changed_.NotifyAll();
  if (!absl::IsCancelled(result.status())) {
    last_ = result;
    ended_at_ = clock_.Now();
  }
  return result;
}

void ExecCredentials::Drop(std::string_view refused_token, std::string_view refused_certificate) {
  const MutexLock lock(mutex_);
  if (last_.ok() && *last_ != nullptr && (*last_)->token == refused_token &&
      (*last_)->certificate == refused_certificate) {
    last_ = std::shared_ptr<const ExecCredential>();
  }
}

ExecCredentials::Result ExecCredentials::Run(const Cancellation& cancellation) const {
  const ExecPlugin& plugin = *config_.exec;
  const std::string who = "credential plugin " + plugin.command + ": ";
  ADAMANT_ASSIGN_OR_RETURN(const std::string authorities, ReadText(config_.authorities));
  Subprocess program;
  program.arguments = {plugin.command};
  program.arguments.insert(
      program.arguments.end(), plugin.arguments.begin(), plugin.arguments.end());
  program.environment = plugin.environment;
  program.environment.emplace_back("KUBERNETES_EXEC_INFO", ExecInfo(config_, authorities));
  const absl::StatusOr<ProgramResult> run = RunProgram(program, cancellation);
  if (absl::IsNotFound(run.status())) {
    return absl::FailedPreconditionError(
        who + std::string(run.status().message()) +
        (plugin.install_hint.empty() ? "" : "\n" + plugin.install_hint));
  }
  if (!run.ok()) {
    const bool keep = absl::IsCancelled(run.status()) || absl::IsDeadlineExceeded(run.status());
    return absl::Status(keep ? run.status().code() : absl::StatusCode::kFailedPrecondition,
                        who + std::string(run.status().message()));
  }
  if (run->exit_code != 0) {
    return absl::FailedPreconditionError(
        who + "it ended with code " + std::to_string(run->exit_code) + ": " + Quoted(run->errors));
  }
  absl::StatusOr<ExecCredential> parsed = ParseExecCredential(run->output, plugin.api_version);
  if (!parsed.ok()) {
    return absl::FailedPreconditionError(who + std::string(parsed.status().message()));
  }
  return std::make_shared<const ExecCredential>(*std::move(parsed));
}

}  // namespace adamant::kube
