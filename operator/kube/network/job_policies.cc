#include "operator/kube/network/job_policies.h"

#include <charconv>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string_view>

#include "operator/core/state/messages.h"
#include "operator/kube/network/pod_ports.h"
#include "operator/kube_client/base/json.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

using controller::Role;

constexpr int kHttpPort = 80;
constexpr int kHttpsPort = 443;

Json TcpPort(int port) { return {{"protocol", "TCP"}, {"port", port}}; }

Json TcpPorts(const std::set<int>& ports) {
  Json list = Json::array();
  for (const int port : ports) {
    list.push_back(TcpPort(port));
  }
  return list;
}

Json PodsOf(const JobIdentity& job, Role role) {
  return {{"matchLabels", {{kJobUidLabel, job.uid}, {kRoleLabel, controller::RoleName(role)}}}};
}

// Pods that are no processes: they write to the job's output, or try that.
Json Exporters(const JobIdentity& job) {
  return {{"matchLabels", {{kJobUidLabel, job.uid}}},
          {"matchExpressions", Json::array({{{"key", kExportLabel}, {"operator", "Exists"}}})}};
}

Json InNamespaces(const std::vector<std::string>& names) {
  return {{"matchExpressions",
           Json::array(
               {{{"key", "kubernetes.io/metadata.name"}, {"operator", "In"}, {"values", names}}})}};
}

// 0: it says none, or one that cannot be.
int PortIn(std::string_view authority) {
  const std::size_t colon = authority.rfind(':');
  if (colon == std::string_view::npos || authority.find(']', colon) != std::string_view::npos) {
    return 0;
  }
  const std::string_view digits = authority.substr(colon + 1);
  int port = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  return port;
}

// Servers that are asked without TLS often send one to where there is.
void AddPorts(std::string_view url, std::set<int>& ports) {
  const bool tls = url.starts_with("https:");
  std::string_view authority = url.substr(std::min(url.size(), url.find("://") + 3));
  authority = authority.substr(0, authority.find_first_of("/?#"));
  const int port = PortIn(authority);
  ports.insert(port > 0 ? port : tls ? kHttpsPort : kHttpPort);
  if (!tls) {
    ports.insert(kHttpsPort);
  }
}

std::set<int> SourcePorts(const v1::Data& data) {
  std::set<int> ports;
  for (const v1::DataSource* source : {&data.train(), &data.validation()}) {
    if (source->has_download()) {
      AddPorts(source->download().images().url(), ports);
      AddPorts(source->download().labels().url(), ports);
    }
  }
  return ports;
}

/// Makes the policies of one job.
class PolicyMaker {
 public:
  PolicyMaker(const JobIdentity& job, const NetworkSettings& settings)
      : job_(job), settings_(settings) {}

  // What all pods of a job may: ask the operators, look names up, and have their metrics read.
  [[nodiscard]] Json Policy(std::string_view name, Json pods, Json ingress, Json egress) const {
    if (!settings_.metrics_namespaces.empty()) {
      ingress.push_back(
          {{"from",
            Json::array({{{"namespaceSelector", InNamespaces(settings_.metrics_namespaces)}}})},
           {"ports", Json::array({TcpPort(kMetricsPort)})}});
    }
    egress.push_back(Operators());
    egress.push_back(Names());
    return {{"metadata", MetadataOf(job_, job_.key.name + "-" + std::string(name))},
            {"spec",
             {{"podSelector", std::move(pods)},
              {"policyTypes", {"Ingress", "Egress"}},
              {"ingress", std::move(ingress)},
              {"egress", std::move(egress)}}}};
  }

  [[nodiscard]] Json RolePolicy(Role role, Json ingress, Json egress) const {
    return Policy(
        controller::RoleName(role), PodsOf(job_, role), std::move(ingress), std::move(egress));
  }

  [[nodiscard]] Json To(Role role, int port) const {
    return {{"to", Json::array({{{"podSelector", PodsOf(job_, role)}}})},
            {"ports", Json::array({TcpPort(port)})}};
  }

  [[nodiscard]] Json From(std::initializer_list<Role> roles, int port) const {
    Json peers = Json::array();
    for (const Role role : roles) {
      peers.push_back({{"podSelector", PodsOf(job_, role)}});
    }
    return {{"from", std::move(peers)}, {"ports", Json::array({TcpPort(port)})}};
  }

 private:
  [[nodiscard]] Json Operators() const {
    const Json operators = {
        {"namespaceSelector", InNamespaces({settings_.operators_namespace})},
        {"podSelector", {{"matchLabels", {{"app.kubernetes.io/name", "adamant-operator"}}}}}};
    return {{"to", Json::array({operators})}, {"ports", TcpPorts(settings_.operators_ports)}};
  }

  [[nodiscard]] Json Names() const {
    Json ports = Json::array();
    for (const int port : settings_.dns_ports) {
      ports.push_back({{"protocol", "UDP"}, {"port", port}});
      ports.push_back(TcpPort(port));
    }
    return {{"ports", std::move(ports)}};
  }

  const JobIdentity& job_;
  const NetworkSettings& settings_;
};

Json ParameterServers(const JobIdentity& job, const PolicyMaker& maker) {
  Json workers = maker.From({Role::kWorker, Role::kDataServer}, kServicePort);
  workers["from"].push_back({{"podSelector", Exporters(job)}});
  const Json others = maker.From({Role::kParameterServer}, kReplicationPort);
  return maker.RolePolicy(Role::kParameterServer,
                          Json::array({workers, others}),
                          Json::array({maker.To(Role::kParameterServer, kReplicationPort)}));
}

Json DataServers(const v1::JobSpec& spec, const PolicyMaker& maker) {
  Json egress = Json::array({maker.To(Role::kParameterServer, kServicePort)});
  if (const std::set<int> sources = SourcePorts(spec.data()); !sources.empty()) {
    egress.push_back({{"ports", TcpPorts(sources)}});
  }
  return maker.RolePolicy(Role::kDataServer,
                          Json::array({maker.From({Role::kWorker}, kServicePort)}),
                          std::move(egress));
}

Json Workers(const PolicyMaker& maker) {
  return maker.RolePolicy(Role::kWorker,
                          Json::array(),
                          Json::array({maker.To(Role::kParameterServer, kServicePort),
                                       maker.To(Role::kDataServer, kServicePort)}));
}

}  // namespace

std::vector<Json> JobPolicies(const JobIdentity& job,
                              const v1::JobSpec& spec,
                              const NetworkSettings& settings) {
  const PolicyMaker maker(job, settings);
  return {ParameterServers(job, maker),
          DataServers(spec, maker),
          Workers(maker),
          maker.Policy("export",
                       Exporters(job),
                       Json::array(),
                       Json::array({maker.To(Role::kParameterServer, kServicePort)}))};
}

}  // namespace adamant::kube
