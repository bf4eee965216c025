#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace adamant::kube {

/// Address of an API server.
struct Endpoint {
  bool tls = true;
  std::string host;  ///< a name or an address; IPv6 without brackets
  int port = 443;
  std::string path;  ///< before every target: "" or "/clusters/east"

  /// "https://[::1]:6443/clusters/east"
  [[nodiscard]] std::string Url() const;
};

/// Reads a URL; what it leaves out is as in browsers, but https is the scheme.
/// Errors: InvalidArgument, saying what to write.
absl::StatusOr<Endpoint> ParseEndpoint(std::string_view url);

/// Text that stands in the configuration, or in a file that is read again as it changes.
struct TextSource {
  std::string text;
  std::filesystem::path file;  ///< where `text` is empty

  [[nodiscard]] bool empty() const { return text.empty() && file.empty(); }
};

/// Returns what `source` holds now, "" if it is empty. Errors: as ReadFile, of at most 1 MiB.
absl::StatusOr<std::string> ReadText(const TextSource& source);

/// A program that prints credentials (KEP-541, "exec" in kubeconfig).
struct ExecPlugin {
  std::string command;  ///< a path, or a name to be looked up in PATH
  std::vector<std::string> arguments = {};
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< added to ours
  std::string api_version;  ///< client.authentication.k8s.io/v1 or …/v1beta1
  std::string install_hint = {};
  bool provide_cluster_info = false;
  std::string cluster_config = {};  ///< JSON, from the cluster's extensions; empty: none
};

/// Settings that say how to reach an API server and as whom.
struct Config {
  std::string source;  ///< where this was read, for messages
  Endpoint server;
  std::string tls_server_name;  ///< that the certificate is for; empty: `server.host`
  bool insecure_skip_tls_verify = false;
  TextSource authorities;  ///< PEM; empty: the system's
  TextSource certificate;  ///< PEM, of ours
  TextSource key;          ///< PEM
  TextSource token;
  std::optional<ExecPlugin> exec;  ///< asked for what is not given above
  std::string default_namespace = "default";
};

/// Refuses what cannot be meant: a certificate without its key, secrets over http, authorities that
/// are not used. Errors: InvalidArgument, naming the field and what to do.
absl::Status CheckConfig(const Config& config);

/// Source of environment variables; gives nothing for those that are not set.
using Environment = std::function<std::optional<std::string>(const std::string& name)>;

/// Returns the environment of this process.
Environment ProcessEnvironment();

/// Returns what a pod is given: files in `service_account`, and the server's address in
/// KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT.
/// Errors: FailedPrecondition, saying what is missing; as ParseEndpoint.
absl::StatusOr<Config> InClusterConfig(
    const Environment& environment,
    const std::filesystem::path& service_account = "/var/run/secrets/kubernetes.io/serviceaccount");

/// Flags of programs that talk to a cluster; empty: not given.
struct ConfigFlags {
  std::string kubeconfig;  ///< --kubeconfig: a file
  std::string context;     ///< --context: a name in it
};

/// Finds the configuration: the file of --kubeconfig, else those of $KUBECONFIG, else what a pod is
/// given (unless --context asks for one), else ~/.kube/config.
/// Errors: as ReadKubeconfig and InClusterConfig; FailedPrecondition when there is none.
absl::StatusOr<Config> LoadConfig(const ConfigFlags& flags, const Environment& environment);

}  // namespace adamant::kube
