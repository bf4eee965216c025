#include "operator/kube_client/auth/kubeconfig.h"

#include <yaml-cpp/yaml.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "operator/kube_client/auth/kubeconfig_fields.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::kube {
namespace {

// With the certificates of some hundred clusters in it.
constexpr std::uint64_t kMaxFileBytes = std::uint64_t{16} << 20;

constexpr char kExecExtension[] = "client.authentication.k8s.io/exec";

/// What all files together say; of each name, what the first of them says.
struct Merged {
  std::map<std::string, Fields> clusters;
  std::map<std::string, Fields> users;
  std::map<std::string, Fields> contexts;
  std::string current_context;
};

absl::StatusOr<YAML::Node> ParseYaml(const std::string& text, const std::string& file) {
  try {
    return YAML::Load(text);
  } catch (const YAML::Exception& error) {
    return absl::InvalidArgumentError(file + ":" + std::to_string(error.mark.line + 1) +
                                      ": not valid YAML: " + error.msg);
  }
}

/// Adds the entries of the list `list` ("clusters") that no earlier file had; what they hold is
/// under `content` ("cluster").
void AddEntries(const Fields& root,
                const char* list,
                const char* content,
                std::map<std::string, Fields>& entries) {
  for (const Fields& entry : root.Elements(list)) {
    const std::string name = entry.Text("name");
    if (name.empty()) {
      entry.Refuse("name", "is missing; name the entry");
    }
    entries.emplace(name, entry.Under(content));
  }
}

absl::Status AddFile(const std::filesystem::path& file, Merged& merged, absl::Status& problem) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string text, ReadFile(file, kMaxFileBytes, Pipes::kRead));
  ADAMANT_ASSIGN_OR_RETURN(const YAML::Node node, ParseYaml(text, file.string()));
  const Fields root(node, file, problem);
  if (const std::string kind = root.Text("kind"); !kind.empty() && kind != "Config") {
    root.Refuse("kind", "is " + kind + ", not Config: this file is not a kubeconfig");
  }
  AddEntries(root, "clusters", "cluster", merged.clusters);
  AddEntries(root, "users", "user", merged.users);
  AddEntries(root, "contexts", "context", merged.contexts);
  if (merged.current_context.empty()) {
    merged.current_context = root.Text("current-context");
  }
  return problem;
}

std::string Names(const std::map<std::string, Fields>& entries) {
  std::string names;
  for (const auto& [name, fields] : entries) {
    names += (names.empty() ? "" : ", ") + name;
  }
  return names.empty() ? "there are none" : "there are: " + names;
}

/// NAME-data in base64, or a file under NAME; the former wins.
TextSource Source(const Fields& fields, const std::string& name) {
  TextSource source{.text = fields.Decoded(name + "-data"), .file = {}};
  if (source.text.empty()) {
    source.file = fields.File(name);
  }
  return source;
}

void ReadCluster(const Fields& cluster, Config& config) {
  const std::string url = cluster.Text("server");
  if (absl::StatusOr<Endpoint> server = ParseEndpoint(url); server.ok()) {
    config.server = *std::move(server);
  } else {
    cluster.Refuse("server", std::string(server.status().message()));
  }
  config.tls_server_name = cluster.Text("tls-server-name");
  config.insecure_skip_tls_verify = cluster.Flag("insecure-skip-tls-verify");
  config.authorities = Source(cluster, "certificate-authority");
  if (!cluster.Text("proxy-url").empty()) {
    cluster.Refuse("proxy-url", "proxies are not supported; remove it and connect directly");
  }
}

void ReadPlugin(const Fields& exec, Config& config) {
  ExecPlugin& plugin = config.exec.emplace();
  plugin.command = exec.Text("command");
  if (plugin.command.empty()) {
    exec.Refuse("command", "is missing; name the program that gives the credentials");
  } else if (plugin.command.find('/') != std::string::npos) {
    plugin.command = exec.File("command").string();
  }
  plugin.arguments = exec.Texts("args");
  for (const Fields& variable : exec.Elements("env")) {
    plugin.environment.emplace_back(variable.Text("name"), variable.Text("value"));
  }
  plugin.api_version = exec.Text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    exec.Refuse("apiVersion",
                "\"" + plugin.api_version +
                    "\" is not supported; use client.authentication.k8s.io/v1 or …/v1beta1, for "
                    "which the plugin may have to be updated");
  }
  plugin.install_hint = exec.Text("installHint");
  plugin.provide_cluster_info = exec.Flag("provideClusterInfo");
  if (exec.Text("interactiveMode") == "Always") {
    exec.Refuse("interactiveMode", "is Always, but there is no terminal here; use IfAvailable");
  }
}

void ReadUser(const Fields& user, Config& config) {
  config.certificate = Source(user, "client-certificate");
  config.key = Source(user, "client-key");
  config.token.file = user.File("tokenFile");
  if (config.token.file.empty()) {
    config.token.text = user.Text("token");
  }
  if (user.Has("exec")) {
    ReadPlugin(user.Under("exec"), config);
  }
  for (const char* gone : {"username", "password"}) {
    if (user.Has(gone)) {
      user.Refuse(gone, "Kubernetes has no passwords since 1.19; use a token or a certificate");
    }
  }
  if (user.Has("auth-provider")) {
    user.Refuse("auth-provider", "Kubernetes has none since 1.26; use an exec plugin");
  }
  for (const char* other : {"as", "as-uid", "as-groups", "as-user-extra"}) {
    if (user.Has(other)) {
      user.Refuse(other, "impersonation is not supported; use the user's own credentials");
    }
  }
}

void ReadClusterConfig(const Fields& cluster, ExecPlugin& plugin) {
  for (const Fields& extension : cluster.Elements("extensions")) {
    if (extension.Text("name") == kExecExtension) {
      plugin.cluster_config = extension.Json("extension");
    }
  }
}

/// The entry of `entries` that the context names; null, and a problem, if there is none.
const Fields* Named(const Fields& context,
                    const std::string& field,
                    const std::map<std::string, Fields>& entries) {
  const std::string name = context.Text(field);
  const auto entry = entries.find(name);
  if (entry == entries.end()) {
    context.Refuse(field, "no " + field + " is named \"" + name + "\" (" + Names(entries) + ")");
    return nullptr;
  }
  return &entry->second;
}

Config ReadContext(const Merged& merged, const std::string& name, const Fields& context) {
  Config config;
  config.source = "context \"" + name + "\" of " + context.file();
  const Fields* cluster = Named(context, "cluster", merged.clusters);
  if (cluster != nullptr) {
    ReadCluster(*cluster, config);
  }
  if (context.Has("user")) {
    if (const Fields* user = Named(context, "user", merged.users); user != nullptr) {
      ReadUser(*user, config);
    }
  }
  if (cluster != nullptr && config.exec) {
    ReadClusterConfig(*cluster, *config.exec);
  }
  if (const std::string space = context.Text("namespace"); !space.empty()) {
    config.default_namespace = space;
  }
  return config;
}

}  // namespace

absl::StatusOr<Config> ReadKubeconfig(const std::vector<std::filesystem::path>& files,
                                      std::string_view context) {
  absl::Status problem;
  Merged merged;
  std::string names;
  bool found = false;
  for (const std::filesystem::path& file : files) {
    const absl::Status status = AddFile(file, merged, problem);
    found = found || !absl::IsNotFound(status);
    if (!status.ok() && !absl::IsNotFound(status)) {
      return status;
    }
    names += (names.empty() ? "" : ", ") + file.string();
  }
  if (!found) {
    return absl::NotFoundError(names + ": there is no such file");
  }
  const std::string wanted = context.empty() ? merged.current_context : std::string(context);
  if (wanted.empty()) {
    return absl::InvalidArgumentError(names +
                                      ": current-context is not set; choose a context with "
                                      "--context (" +
                                      Names(merged.contexts) + ")");
  }
  const auto chosen = merged.contexts.find(wanted);
  if (chosen == merged.contexts.end()) {
    return absl::InvalidArgumentError(names + ": no context is named \"" + wanted + "\" (" +
                                      Names(merged.contexts) + ")");
  }
  Config config = ReadContext(merged, wanted, chosen->second);
  ADAMANT_RETURN_IF_ERROR(problem);
  ADAMANT_RETURN_IF_ERROR(CheckConfig(config));
  return config;
}

}  // namespace adamant::kube
