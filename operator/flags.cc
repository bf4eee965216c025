#include "operator/flags.h"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "services/common/job/yaml/scalars.h"

namespace adamant {
namespace {

constexpr int kBadFlags = 2;
constexpr std::size_t kLongestNamespace = 63;
constexpr std::size_t kLongestSecret = 253;
constexpr std::chrono::minutes kLeastLife{1};
constexpr std::chrono::hours kMostLife{24 * 30};

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof(name) - 1);
  return name;
}

bool IsLabelCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
}

// Source: RFC 1123, as Kubernetes has it, which limits the length of the whole name alone.
bool IsLabel(const std::string& text) {
  return !text.empty() && text.front() != '-' && text.back() != '-' &&
         std::ranges::all_of(text, IsLabelCharacter);
}

// What is between separators, also where that is nothing.
std::vector<std::string> Split(const std::string& text, char separator) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == separator) {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

// Each once, in their order; none of an empty text.
std::vector<std::string> Names(const std::string& list) {
  const std::vector<std::string> parts = Split(list, ',');
  const std::set<std::string> names(parts.begin(), parts.end());
  return list.empty() ? std::vector<std::string>()
                      : std::vector<std::string>(names.begin(), names.end());
}

// Empty when all are names of namespaces, else what is wrong.
std::string CheckNamespaces(const std::string& list) {
  for (const std::string& name : Names(list)) {
    if (name.size() > kLongestNamespace || !IsLabel(name)) {
      return "\"" + name +
             "\" is not the name of a namespace: up to 63 lower-case letters, digits and '-', "
             "which is at neither end";
    }
  }
  return "";
}

// The same, of secrets.
std::string CheckSecrets(const std::string& list) {
  for (const std::string& name : Names(list)) {
    if (name.size() > kLongestSecret || !std::ranges::all_of(Split(name, '.'), IsLabel)) {
      return "\"" + name +
             "\" is not the name of a secret: up to 253 lower-case letters, digits, '-' and '.', "
             "with a letter or digit at each end of what is between dots";
    }
  }
  return "";
}

// Empty when it can be the name of who signs certificates, else what is wrong.
std::string CheckTrustDomain(const std::string& name) {
  return name.size() <= kLongestSecret && std::ranges::all_of(Split(name, '.'), IsLabel)
             ? ""
             : "\"" + name +
                   "\" is no trust domain: labels of lower-case letters, digits and '-', "
                   "with dots between them";
}

// Empty when it can be the life of certificates, else what is wrong.
std::string CheckLife(const std::string& text) {
  const auto life = job::ParseDuration(text);
  return life && *life >= kLeastLife && *life <= kMostLife
             ? ""
             : "\"" + text + "\" is no life of certificates: 1m to 720h";
}

// 0 where an address names none, as who listens there will tell.
int PortOf(std::string_view address) {
  address.remove_prefix(std::min(address.size(), address.rfind(':') + 1));
  int port = 0;
  std::from_chars(address.data(), address.data() + address.size(), port);
  return port;
}

// Each of "HOST:PORT, …" with another port.
std::string AtPort(const std::string& addresses, int port) {
  std::string others;
  for (const std::string& address : Split(addresses, ',')) {
    others += others.empty() ? "" : ",";
    others += address.substr(0, address.rfind(':')) + ":" + std::to_string(port);
  }
  return others;
}

// Flags as they are given: with several values, separated by commas.
struct Lists {
  std::string namespaces;
  std::string pull_secrets;
  bool network_policies = false;  // whether jobs get any; of those, the next
  std::string metrics_namespaces;
};

// Flags of TLS, as they are given.
struct TlsFlags {
  std::string mode = "off";
  std::string life = "24h";
  kube::OperatorSecurity security;
  int certificate_port = 7071;
  int control_port = 7072;
};

void AddTlsFlags(CLI::App& app, TlsFlags& flags) {
  app.add_option("--tls",
                 flags.mode,
                 "Whether the processes of jobs that begin now use TLS: on, off. A job keeps what "
                 "it began with")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--trust-domain", flags.security.trust_domain, "Whose certificates they have")
      ->check(CLI::Validator(CheckTrustDomain, "NAME"))
      ->capture_default_str();
  app.add_option("--ca-secret",
                 flags.security.secret,
                 "Secret in the operators' namespace that the authority is kept in")
      ->check(CLI::Validator(CheckSecrets, "NAME"))
      ->capture_default_str();
  app.add_option("--issuer-secret",
                 flags.security.issuer_secret,
                 "Secret there with the certificate of an authority that signs in place of roots "
                 "made by operators: tls.crt, tls.key, ca.crt, as cert-manager has them")
      ->check(CLI::Validator(CheckSecrets, "NAME"));
  app.add_option("--certificate-life", flags.life, "Life of certificates")
      ->check(CLI::Validator(CheckLife, "DURATION"))
      ->capture_default_str();
  app.add_option(
         "--certificate-port", flags.certificate_port, "Port where processes get certificates")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
  app.add_option("--tls-control-port", flags.control_port, "Port of control streams by TLS")
      ->check(CLI::Range(1, 65535))
      ->capture_default_str();
}

// The hosts are those of streams without TLS.
std::optional<kube::OperatorSecurity> SecurityOf(const TlsFlags& flags,
                                                 const kube::OperatorOptions& options) {
  if (flags.mode == "off") {
    return std::nullopt;
  }
  kube::OperatorSecurity security = flags.security;
  security.certificate_life =
      std::chrono::duration_cast<std::chrono::seconds>(*job::ParseDuration(flags.life));
  security.control_listen = AtPort(options.control_listen, flags.control_port);
  security.control_service = AtPort(options.pods.control_service, flags.control_port);
  security.certificates_listen = AtPort(options.control_listen, flags.certificate_port);
  security.certificates_service = AtPort(options.pods.control_service, flags.certificate_port);
  return security;
}

void AddNetworkFlags(CLI::App& app, kube::NetworkSettings& network, Lists& lists) {
  CLI::Option* const policies =
      app.add_flag("--network-policies",
                   lists.network_policies,
                   "Give each job network policies: what its processes do not need is denied");
  app.add_option("--metrics-namespaces",
                 lists.metrics_namespaces,
                 "Namespaces whose pods they let read metrics: NAME,... [none]")
      ->check(CLI::Validator(CheckNamespaces, "NAME,..."))
      ->needs(policies);
  app.add_option("--dns-ports", network.dns_ports, "Ports of the cluster's DNS: PORT,...")
      ->delimiter(',')
      ->check(CLI::Range(1, 65535))
      ->capture_default_str()
      ->needs(policies);
}

void AddFlags(CLI::App& app, OperatorFlags& flags, Lists& lists) {
  kube::OperatorOptions& options = flags.options;
  kube::PodImage& image = options.pods.image;
  app.add_option("--kubeconfig", flags.config.kubeconfig, "How to reach the cluster")
      ->description("File that says how to reach the cluster [that of a pod, or ~/.kube/config]");
  app.add_option("--context", flags.config.context, "Which of its contexts");
  app.add_option("--namespace", options.name_space, "Namespace of the operators' lease")
      ->required();
  app.add_option("--watch-namespaces",
                 lists.namespaces,
                 "Namespaces whose jobs are led: NAME,... [all]. With some, nothing is asked for "
                 "that is in none: nodes, persistent volumes, storage classes")
      ->check(CLI::Validator(CheckNamespaces, "NAME,..."));
  app.add_option("--identity", options.identity, "Name among the operators [the host's name]");
  app.add_option("--control-listen", options.control_listen, "Address of control streams")
      ->capture_default_str();
  app.add_option("--control-service",
                 options.pods.control_service,
                 "Where pods find the operators: HOST:PORT, ...")
      ->required();
  app.add_option("--metrics-listen", flags.metrics_listen, "Address of /metrics")
      ->capture_default_str();
  app.add_option("--probes-listen", flags.probes_listen, "Address of /healthz and /readyz")
      ->capture_default_str();
  app.add_option("--image", image.name, "Image of the jobs' pods")->required();
  app.add_option(
         "--image-pull-policy",
         image.pull_policy,
         "When nodes fetch it: Always, IfNotPresent or Never [as Kubernetes does by itself]")
      ->check(CLI::IsMember({"Always", "IfNotPresent", "Never"}));
  app.add_option("--image-pull-secrets",
                 lists.pull_secrets,
                 "Secrets in the jobs' namespaces by which nodes fetch it: NAME,...")
      ->check(CLI::Validator(CheckSecrets, "NAME,..."));
}

}  // namespace

std::variant<OperatorFlags, int> ParseOperatorFlags(int argc, char** argv) {
  CLI::App app("Leads the TrainingJobs of a Kubernetes cluster.", "adamant-operator");
  OperatorFlags flags;
  flags.options.control_listen = "[::]:7070";
  Lists lists;
  TlsFlags tls;
  kube::NetworkSettings network;
  network.dns_ports = {53, 5353};
  AddFlags(app, flags, lists);
  AddTlsFlags(app, tls);
  AddNetworkFlags(app, network, lists);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadFlags;
  }
  flags.options.security = SecurityOf(tls, flags.options);
  flags.options.namespaces = Names(lists.namespaces);
  flags.options.pods.image.pull_secrets = Names(lists.pull_secrets);
  if (lists.network_policies) {
    network.operators_namespace = flags.options.name_space;
    network.operators_ports = {
        PortOf(flags.options.control_listen), tls.certificate_port, tls.control_port};
    network.metrics_namespaces = Names(lists.metrics_namespaces);
    flags.options.pods.network = std::move(network);
  }
  if (flags.options.identity.empty()) {
    flags.options.identity = HostName();
  }
  return flags;
}

}  // namespace adamant
