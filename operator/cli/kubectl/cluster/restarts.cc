#include "operator/cli/kubectl/cluster/restarts.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/json.h"

namespace adamant::kubectl {
namespace {

using kube::Json;

constexpr std::pair<const char*, const char*> kRoles[] = {
    {"worker", "worker"}, {"dataServer", "data-server"}, {"parameterServer", "parameter-server"}};
constexpr const char* kCauses[] = {
    "failed", "outOfMemory", "evicted", "nodeLost", "unresponsive", "deleted"};

// "OutOfMemory" of "outOfMemory".
std::string NameOfCause(std::string field) {
  field[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(field[0])));
  return field;
}

std::string CausesText(const Json& job, const char* role) {
  std::string text;
  for (const char* cause : kCauses) {
    const std::int64_t count = kube::IntAt(job, {"status", "roles", role, "restartCauses", cause});
    if (count > 0) {
      text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + NameOfCause(cause);
    }
  }
  return text;
}

}  // namespace

std::string RestartsText(const Json& job) {
  std::string text;
  for (const auto& [role, name] : kRoles) {
    const std::int64_t count = kube::IntAt(job, {"status", "roles", role, "restarts"});
    if (count > 0) {
      const std::string causes = CausesText(job, role);
      text += (text.empty() ? "" : ", ") + std::string(name) + " " + std::to_string(count) +
              (causes.empty() ? "" : " (" + causes + ")");
    }
  }
  return text;
}

}  // namespace adamant::kubectl
