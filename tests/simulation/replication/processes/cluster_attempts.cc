// The worker of the job, and its attempts.

#include <algorithm>
#include <string>

#include "tests/simulation/replication/processes/cluster.h"

namespace adamant::replication_simulation {

void Cluster::StartForeman(std::uint64_t generation) {
  EndForeman();
  foreman_ =
      std::make_unique<Foreman>(world_, *this, generation, "foreman/" + std::to_string(++starts_));
}

void Cluster::EndForeman() {
  if (foreman_ == nullptr) {
    return;
  }
  world_.scheduler.Record(foreman_->life->name, "ends");
  foreman_->life->ended = true;
  for (auto& [id, connection] : connections_) {
    if (connection.replica == foreman_.get()) {
      Doom(id, milliseconds(500));
    }
  }
  const std::uint64_t generation = foreman_->generation();
  old_foremen_.push_back(std::move(foreman_));
  Pause(false);
  TellExitOfForeman(generation);
}

void Cluster::TellExitOfForeman(std::uint64_t generation) {
  ControllerProcess* const controller = controller_.get();
  if (controller != nullptr) {
    world_.scheduler.After(milliseconds(50), controller->life, [controller, generation] {
      controller->OnExited({controller::Role::kWorker, 0}, generation, true);
    });
  }
}

void Cluster::BeginAttempt(std::uint64_t attempt) {
  if (attempt == attempt_) {
    return;
  }
  world_.scheduler.Record("cluster", "begins another attempt", attempt);
  attempt_ = attempt;
  for (std::uint32_t writer = 0; writer < world_.setup.writers; ++writer) {
    RestartWriter(writer);
  }
  for (const auto& clerk : clerks_) {
    clerk->BeginAnew();
  }
}

void Cluster::Pause(bool paused) {
  paused_ = paused;
  for (const auto& writer : writers_) {
    writer->Pause(paused);
  }
  for (const auto& clerk : clerks_) {
    clerk->Pause(paused);
  }
}

bool Cluster::IsAtRest() const {
  return std::ranges::all_of(writers_, [](const auto& each) { return each->IsAtRest(); }) &&
         std::ranges::all_of(clerks_, [](const auto& each) { return each->IsAtRest(); });
}

}  // namespace adamant::replication_simulation
