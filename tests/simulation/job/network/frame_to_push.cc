#include "tests/simulation/job/network/frame_to_push.h"

#include <deque>
#include <memory>

namespace adamant::simulation {
namespace {

/// Memory of a received push.
struct Received {
  std::deque<std::vector<float>> arrays;

  std::span<const float> Keep(const std::vector<std::span<const float>>& pieces) {
    std::vector<float>& whole = arrays.emplace_back();
    for (const std::span<const float> piece : pieces) {
      whole.insert(whole.end(), piece.begin(), piece.end());
    }
    return whole;
  }
};

}  // namespace

parameter_server::Push ToParameterServer(const parameter_server::WorkerId& writer,
                                         const PushFrame& frame) {
  const auto received = std::make_shared<Received>();
  // Neither examples nor a correction, which this world knows nothing of.
  parameter_server::Push push{.writer = writer,
                              .updates = frame.payload.updates,
                              .terms = {.job_examples = frame.header.terms.job_examples},
                              .owner = received};
  for (const worker::PushPayload::Operands& operands : frame.payload.operands) {
    push.operands.push_back({.tensor = operands.tensor,
                             .rows = operands.rows,
                             .inputs = operands.inputs,
                             .outputs = operands.outputs,
                             .activations = received->Keep(operands.activations),
                             .errors = received->Keep(operands.errors)});
  }
  for (parameter_server::ShardUpdate& update : push.updates) {
    update.values = received->Keep({update.values});
  }
  return push;
}

}  // namespace adamant::simulation
