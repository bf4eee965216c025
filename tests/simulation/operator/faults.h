#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/simulation/operator/checker.h"
#include "tests/simulation/operator/cluster/nodes.h"
#include "tests/simulation/operator/cluster/operator_process.h"

namespace adamant::orchestration {

class User;

/// What goes wrong, by chance, until it stops going wrong.
class Faults {
 public:
  Faults(World& world,
         std::vector<std::unique_ptr<OperatorProcess>>& operators,
         Network& network,
         Nodes& nodes,
         User& user);

  /// Plans the first fault; each plans the next.
  void Begin();

  [[nodiscard]] std::uint64_t injected() const { return injected_; }
  [[nodiscard]] bool over() const { return over_; }

 private:
  void PlanNext();
  void Inject();
  void InjectOnPods(std::uint64_t which);
  void InjectOnOperators(std::uint64_t which);
  void LoseNode();
  void Trouble(OperatorProcess& process);
  void Succeed(OperatorProcess& process);
  void EndAll();
  OperatorProcess& Any();

  World& world_;
  std::vector<std::unique_ptr<OperatorProcess>>& operators_;
  Network& network_;
  Nodes& nodes_;
  User& user_;
  Clock::TimePoint until_{};
  std::uint64_t injected_ = 0;
  bool over_ = false;
};

}  // namespace adamant::orchestration
