#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "operator/kube_client/base/json.h"

// What NetworkPolicies let through, as Kubernetes defines it: for tests.
namespace adamant::kube {

/// Pod in a namespace, or what is outside the cluster (no namespace).
struct Endpoint {
  std::string ns;
  Json labels = Json::object();
};

inline bool MatchesExpression(const Json& labels, const Json& expression) {
  const auto label = labels.find(expression["key"].get<std::string>());
  if (expression["operator"] == "Exists") {
    return label != labels.end();
  }
  const Json& values = expression["values"];  // the only other operator that is used here: In
  return label != labels.end() && std::ranges::find(values, *label) != values.end();
}

inline bool Selects(const Json& selector, const Json& labels) {
  const Json wanted = selector.value("matchLabels", Json::object());
  for (const auto& [key, value] : wanted.items()) {
    if (labels.value(key, Json()) != value) {
      return false;
    }
  }
  const Json expressions = selector.value("matchExpressions", Json::array());
  return std::ranges::all_of(
      expressions, [&](const Json& expression) { return MatchesExpression(labels, expression); });
}

/// `ns`: of the policy.
inline bool IsPeer(const Json& peer, const std::string& ns, const Endpoint& other) {
  const bool in_namespace =
      peer.contains("namespaceSelector")
          ? Selects(peer["namespaceSelector"], {{"kubernetes.io/metadata.name", other.ns}})
          : other.ns == ns;
  return !other.ns.empty() && in_namespace &&
         Selects(peer.value("podSelector", Json::object()), other.labels);
}

/// `peers`: "from" or "to". A rule without peers is for all, one without ports for all of them.
inline bool RuleAllows(const Json& rule,
                       const char* peers,
                       const std::string& ns,
                       const Endpoint& other,
                       const Json& port) {
  const Json ports = rule.value("ports", Json::array());
  const bool to_port = ports.empty() || std::ranges::find(ports, port) != ports.end();
  const Json list = rule.value(peers, Json::array());
  return to_port && (list.empty() || std::ranges::any_of(list, [&](const Json& peer) {
                       return IsPeer(peer, ns, other);
                     }));
}

/// Whether the policies of one end let it through: where none selects it, all is.
inline bool EndAllows(const std::vector<Json>& policies,
                      const char* rules,
                      const char* peers,
                      const std::pair<Endpoint, Endpoint>& ends,
                      const Json& port) {
  bool selected = false;
  for (const Json& policy : policies) {
    const std::string ns = KeyOf(policy).ns;
    if (ns != ends.first.ns || !Selects(policy["spec"]["podSelector"], ends.first.labels)) {
      continue;
    }
    selected = true;
    for (const Json& rule : policy["spec"][rules]) {
      if (RuleAllows(rule, peers, ns, ends.second, port)) {
        return true;
      }
    }
  }
  return !selected;
}

inline bool Allows(const std::vector<Json>& policies,
                   const Endpoint& from,
                   const Endpoint& to,
                   int port,
                   const std::string& protocol = "TCP") {
  const Json wanted = {{"protocol", protocol}, {"port", port}};
  return EndAllows(policies, "egress", "to", {from, to}, wanted) &&
         EndAllows(policies, "ingress", "from", {to, from}, wanted);
}

}  // namespace adamant::kube
