#pragma once

#include <set>
#include <string>
#include <vector>

#include "operator/kube_client/base/transport.h"
#include "tests/simulation/operator/world/sabotage.h"
#include "tests/simulation/operator/world/world.h"

namespace adamant::orchestration {

/// How one operator reaches the API: requests get lost before or after they take effect, or take
/// effect late; the process dies at a chosen write; and what the World's Mutation takes away.
class OperatorTransport final : public kube::Transport {
 public:
  /// What happens to requests: the chance of each.
  struct Troubles {
    double refused = 0;      ///< not carried out
    double answer_lost = 0;  ///< carried out
    double late = 0;         ///< of writes: given up, and carried out seconds later
    double slow = 0;         ///< of writes: who waits does something else meanwhile
    double cut = 0;          ///< of watches: broken after some events
  };

  explicit OperatorTransport(World& world) : world_(world), sabotage_(world) {}

  absl::StatusOr<kube::HttpResponse> Send(const kube::HttpRequest& request,
                                          const kube::Cancellation& cancellation) override;
  absl::StatusOr<kube::HttpResponse> Stream(
      const kube::HttpRequest& request,
      std::chrono::milliseconds idle,
      const std::function<bool(std::string_view line)>& on_line,
      const kube::Cancellation& cancellation) override;

  void SetTroubles(const Troubles& troubles) { troubles_ = troubles; }

  /// The process dies at the `n`th write from now, counted from 1: right before it is sent, or
  /// right after it took effect. `died` is called then; nothing goes through any more.
  void CrashAtWrite(std::size_t n, bool after, std::function<void()> died);

  /// The process is dead, or alive again.
  void SetDead(bool dead) {
    dead_ = dead;
    unanswered_.clear();
  }
  [[nodiscard]] bool dead() const { return dead_; }

  /// Requests and watches so far.
  [[nodiscard]] std::size_t tries() const { return tries_; }

  /// "PUT configmaps", of all writes that took effect or might have.
  [[nodiscard]] const std::vector<std::string>& writes() const { return writes_; }

 private:
  absl::StatusOr<kube::HttpResponse> SendWrite(const kube::HttpRequest& request,
                                               const kube::Cancellation& cancellation);
  absl::StatusOr<kube::HttpResponse> Pass(const kube::HttpRequest& request,
                                          const kube::Cancellation& cancellation);
  [[nodiscard]] bool Happens(double chance);
  void Die();

  World& world_;
  Sabotage sabotage_;
  Troubles troubles_;
  bool dead_ = false;
  std::size_t tries_ = 0;
  std::size_t crash_in_ = 0;  // writes; 0: never
  bool crash_after_ = false;
  std::function<void()> died_;
  std::vector<std::string> writes_;
  std::set<std::string> unanswered_;  // writes, by body, that took effect or may yet
};

}  // namespace adamant::orchestration
