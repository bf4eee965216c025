#include "operator/kube/volumes/pod_security.h"

#include <nlohmann/json.hpp>

#include "operator/kube_client/base/json.h"

namespace adamant::kube {
namespace {

constexpr char kVolume[] = "tls-token";
constexpr char kFolder[] = "/var/run/secrets/adamant.dev";
constexpr char kFile[] = "token";
constexpr int kTokenSeconds = 600;  // the least that Kubernetes takes

// Where all of a pod's containers have one user, as ours do by default, the node gives the file to
// it; where they differ, to their group, fsGroup.
constexpr int kOwnerReads = 0400;

Json TokenVolume(const std::string& trust_domain) {
  const Json token = {{"audience", CertificateAudience(trust_domain)},
                      {"expirationSeconds", kTokenSeconds},
                      {"path", kFile}};
  return {{"name", kVolume},
          {"projected",
           {{"defaultMode", kOwnerReads},
            {"sources", Json::array({{{"serviceAccountToken", token}}})}}}};
}

}  // namespace

std::string CertificateAudience(const std::string& trust_domain) {
  return "adamant.dev/certificates/" + trust_domain;
}

void AddSecurity(const PodSecurity& security, Json& pod) {
  const std::string name_space = pod["metadata"]["namespace"];
  Json& container = pod["spec"]["containers"][0];
  for (const std::string& argument : {"--certificates=" + security.certificates,
                                      std::string("--tls-token=") + kFolder + "/" + kFile,
                                      "--trust-domain=" + security.trust_domain,
                                      "--namespace=" + name_space}) {
    container["args"].push_back(argument);
  }
  container["env"].push_back({{"name", "ADAMANT_ROOTS"}, {"value", security.roots()}});
  container["volumeMounts"].push_back(
      {{"name", kVolume}, {"mountPath", kFolder}, {"readOnly", true}});
  pod["spec"]["volumes"].push_back(TokenVolume(security.trust_domain));
}

}  // namespace adamant::kube
