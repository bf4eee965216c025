#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace adamant::graph {

/// Memory for floats, zero at first: begins on a cache line, in huge pages where the system has
/// them. The thread that creates it is the first to touch it.
class FloatBlock {
 public:
  FloatBlock() = default;
  /// Throws std::bad_alloc.
  explicit FloatBlock(std::size_t floats);

  /// Stays where it is when the block is moved.
  [[nodiscard]] float* data() { return floats_.get(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  struct Free {
    void operator()(float* floats) const;
  };

  std::unique_ptr<float[], Free> floats_;
  std::int64_t bytes_ = 0;
};

}  // namespace adamant::graph
