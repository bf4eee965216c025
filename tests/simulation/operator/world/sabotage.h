#pragma once

#include <map>
#include <string>
#include <string_view>

#include "operator/kube_client/base/json.h"
#include "operator/kube_client/base/transport.h"
#include "tests/simulation/operator/world/world.h"

namespace adamant::orchestration {

/// Changes requests and answers as the World's Mutation says.
class Sabotage {
 public:
  explicit Sabotage(World& world) : world_(world) {}

  absl::StatusOr<kube::HttpResponse> Send(const kube::HttpRequest& request,
                                          const kube::Cancellation& cancellation);

  /// Whether the operator is not told this line of a watch.
  [[nodiscard]] bool Hides(std::string_view line) const;

  /// This line of a watch, as the operator is told it.
  [[nodiscard]] std::string Changed(std::string_view line);

 private:
  void ChangeWrite(kube::HttpRequest& request);
  void ChangeAnswer(const kube::HttpRequest& request, kube::Json& object);
  void ChangeState(kube::Json& object);
  void ChangeObject(kube::Json& object);
  [[nodiscard]] std::string UidOfJob() const;

  World& world_;
  std::uint64_t names_ = 0;
  kube::Json old_state_;
  std::map<std::string, kube::Json> first_workers_;  // by UID of the job
};

}  // namespace adamant::orchestration
