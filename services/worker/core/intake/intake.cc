#include "services/worker/core/intake/intake.h"

#include <algorithm>
#include <string>

#include "services/common/base/check.h"
#include "services/common/tensor/shape.h"

namespace adamant::worker {
namespace {

BatchFormat FormatOf(const model::Graph& graph, std::size_t batch_size) {
  const auto elements = ElementCount(graph.input);
  ADAMANT_CHECK(elements.has_value(), "the graph's input was checked when it was built");
  return {.batch_size = batch_size,
          .channels = static_cast<std::size_t>(graph.input[0]),
          .example_bytes = static_cast<std::size_t>(*elements),
          .classes = graph.classes};
}

}  // namespace

Intake::Intake(const WorkerOptions& options, const model::Graph& graph, Notifier& ready_notifier)
    : format_(FormatOf(graph, options.batch_size)),
      window_(options.threads * (2 * options.push_every + options.prefetch)),
      ready_notifier_(ready_notifier),
      batches_(
          options.threads * (options.prefetch + 1), options.batch_size, format_.example_bytes) {}

absl::Status Intake::SetNormalisation(const Normalisation& normalisation) {
  const std::size_t channels = format_.channels;
  if (normalisation.mean.size() != channels || normalisation.deviation.size() != channels) {
    return absl::InvalidArgumentError("the data has " + std::to_string(normalisation.mean.size()) +
                                      " channels, the model's input " + std::to_string(channels));
  }
  MutexLock lock(mutex_);
  if (!normalisation_.mean.empty() && normalisation != normalisation_) {
    return absl::InvalidArgumentError("data servers disagree on how inputs are normalised");
  }
  if (normalisation_.mean.empty()) {
    normalisation_ = normalisation;
  }
  return absl::OkStatus();
}

void Intake::Put(Batch* batch) {
  batches_.Put(batch);
  ready_notifier_.Notify();
}

void Intake::SetDrained(bool drained) {
  drained_.store(drained, std::memory_order_release);
  if (drained) {
    ready_notifier_.Notify();
  }
}

void Intake::Recycle(Batch* batch) {
  batches_.Recycle(batch);
  slot_notifier_.Notify();
}

void Intake::OnDataServer(ServerSlot server, bool connected) {
  connected ? work_.OnConnected(server) : work_.OnDisconnected(server);
}

void Intake::OnEpochClosed(DataEpoch epoch) {
  closed_epoch_.store(std::max(closed_epoch_.load(), epoch), std::memory_order_release);
  work_.OnEpochClosed(epoch);
  ready_notifier_.Notify();
}

void Intake::HandBackQueued() {
  while (Batch* const batch = Take()) {
    HandBack({batch->lease});
    Recycle(batch);
  }
}

}  // namespace adamant::worker
