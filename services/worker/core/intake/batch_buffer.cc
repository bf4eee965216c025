#include "services/worker/core/intake/batch_buffer.h"

namespace adamant::worker {

BatchBuffer::BatchBuffer(std::size_t slots, std::size_t batch_size, std::size_t example_bytes)
    : free_(slots), ready_(slots) {
  slots_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    auto& batch = slots_.emplace_back(std::make_unique<Batch>());
    batch->pixels.resize(batch_size * example_bytes);
    batch->labels.resize(batch_size);
    free_.Push(batch.get());
  }
}

}  // namespace adamant::worker
