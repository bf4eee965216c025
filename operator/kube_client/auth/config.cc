#include "operator/kube_client/auth/config.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <system_error>

#include "operator/kube_client/auth/kubeconfig.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::kube {
namespace {

constexpr std::uint64_t kMaxTextBytes = std::uint64_t{1} << 20;

std::optional<int> ParsePort(std::string_view text) {
  int port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && port >= 1 && port <= 65535 ? std::optional(port) : std::nullopt;
}

absl::Status BadUrl(std::string_view url, std::string_view why) {
  return absl::InvalidArgumentError("\"" + std::string(url) + "\" " + std::string(why) +
                                    "; write it like https://10.0.0.1:6443 or https://[::1]:6443");
}

/// Splits "HOST", "HOST:PORT", "[ADDRESS]" and "[ADDRESS]:PORT".
bool SplitHostAndPort(std::string_view text, std::string_view& host, std::string_view& port) {
  const bool bracketed = text.starts_with('[');
  const std::size_t end = bracketed ? text.find(']') : text.find(':');
  if (bracketed && end == std::string_view::npos) {
    return false;
  }
  host = bracketed ? text.substr(1, end - 1) : text.substr(0, end);
  std::string_view rest = text.substr(std::min(text.size(), bracketed ? end + 1 : host.size()));
  if (!rest.empty()) {
    if (!rest.starts_with(':') || rest.size() == 1) {
      return false;
    }
    port = rest.substr(1);
  }
  const bool address = host.find(':') != std::string_view::npos;
  return !host.empty() && address == bracketed &&
         host.find_first_of(" \t\r\n@[]%\\") == std::string_view::npos;
}

}  // namespace

std::string Endpoint::Url() const {
  const bool bare_address = host.find(':') != std::string::npos;
  return (tls ? "https://" : "http://") + (bare_address ? "[" + host + "]" : host) + ":" +
         std::to_string(port) + path;
}

absl::StatusOr<Endpoint> ParseEndpoint(std::string_view url) {
  Endpoint endpoint;
  std::string_view rest = url;
  if (const std::size_t scheme = rest.find("://"); scheme != std::string_view::npos) {
    if (rest.substr(0, scheme) != "https" && rest.substr(0, scheme) != "http") {
      return BadUrl(url, "has a scheme other than https");
    }
    endpoint.tls = rest.substr(0, scheme) == "https";
    rest.remove_prefix(scheme + 3);
  }
  if (rest.find_first_of("?#") != std::string_view::npos) {
    return BadUrl(url, "has a query or a fragment");
  }
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  endpoint.path = rest.substr(slash);
  while (endpoint.path.ends_with('/')) {
    endpoint.path.pop_back();
  }
  std::string_view host;
  std::string_view port;
  if (!SplitHostAndPort(rest.substr(0, slash), host, port)) {
    return BadUrl(url, "has no valid host");
  }
  endpoint.host = host;
  endpoint.port = endpoint.tls ? 443 : 80;
  if (!port.empty()) {
    const std::optional<int> number = ParsePort(port);
    if (!number) {
      return BadUrl(url, "has no valid port");
    }
    endpoint.port = *number;
  }
  return endpoint;
}

absl::StatusOr<std::string> ReadText(const TextSource& source) {
  if (source.file.empty()) {
    return source.text;
  }
  return ReadFile(source.file, kMaxTextBytes, Pipes::kRead);
}

absl::Status CheckConfig(const Config& config) {
  const auto refuse = [&](const std::string& what) {
    return absl::InvalidArgumentError(config.source + ": " + what);
  };
  if (config.server.host.empty()) {
    return refuse("server is missing; give the cluster's URL");
  }
  if (config.certificate.empty() != config.key.empty()) {
    return refuse(config.key.empty() ? "a client certificate is given without its client key"
                                     : "a client key is given without its client certificate");
  }
  const bool secrets = !config.token.empty() || !config.key.empty() || config.exec.has_value();
  if (!config.server.tls && secrets) {
    return refuse("server: credentials are not sent over http, where all can read them; use https");
  }
  if (config.insecure_skip_tls_verify && !config.authorities.empty()) {
    return refuse(
        "insecure-skip-tls-verify: certificate authorities are given, but would not be used; "
        "remove one of both");
  }
  return absl::OkStatus();
}

Environment ProcessEnvironment() {
  return [](const std::string& name) -> std::optional<std::string> {
    const char* value = std::getenv(name.c_str());
    return value == nullptr ? std::nullopt : std::optional<std::string>(value);
  };
}

absl::StatusOr<Config> InClusterConfig(const Environment& environment,
                                       const std::filesystem::path& service_account) {
  std::string host = environment("KUBERNETES_SERVICE_HOST").value_or("");
  const std::string port = environment("KUBERNETES_SERVICE_PORT").value_or("");
  if (host.empty() || port.empty()) {
    return absl::FailedPreconditionError(
        "not in a pod: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not both set");
  }
  if (host.find(':') != std::string::npos && !host.starts_with('[')) {
    host = "[" + host + "]";
  }
  Config config;
  config.source = "the pod's service account";
  ADAMANT_ASSIGN_OR_RETURN(config.server, ParseEndpoint("https://" + host + ":" + port));
  config.token.file = service_account / "token";
  config.authorities.file = service_account / "ca.crt";
  for (const TextSource* source : {&config.token, &config.authorities}) {
    if (std::error_code error; !std::filesystem::exists(source->file, error)) {
      return absl::FailedPreconditionError(
          source->file.string() +
          ": is missing; the pod needs automountServiceAccountToken, or give --kubeconfig");
    }
  }
  const absl::StatusOr<std::string> name =
      ReadText({.text = "", .file = service_account / "namespace"});
  if (name.ok() && !name->empty()) {
    config.default_namespace = name->substr(0, name->find_last_not_of(" \r\n") + 1);
  }
  return config;
}

absl::StatusOr<Config> LoadConfig(const ConfigFlags& flags, const Environment& environment) {
  if (!flags.kubeconfig.empty()) {
    return ReadKubeconfig({flags.kubeconfig}, flags.context);
  }
  std::vector<std::filesystem::path> files;
  const std::string listed = environment("KUBECONFIG").value_or("");
  for (std::size_t begin = 0; begin < listed.size();) {
    const std::size_t end = std::min(listed.find(':', begin), listed.size());
    if (end > begin) {
      files.emplace_back(listed.substr(begin, end - begin));
    }
    begin = end + 1;
  }
  if (!files.empty()) {
    return ReadKubeconfig(files, flags.context);
  }
  if (flags.context.empty() && environment("KUBERNETES_SERVICE_HOST")) {
    return InClusterConfig(environment);
  }
  const std::string home = environment("HOME").value_or("");
  absl::StatusOr<Config> config = ReadKubeconfig({home + "/.kube/config"}, flags.context);
  if (absl::IsNotFound(config.status())) {
    return absl::FailedPreconditionError(
        "no cluster is configured: give --kubeconfig FILE, set KUBECONFIG, or have " + home +
        "/.kube/config");
  }
  return config;
}

}  // namespace adamant::kube
