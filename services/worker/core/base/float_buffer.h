#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <new>
#include <span>

#include "services/common/base/system/huge_pages.h"

namespace adamant::worker {

/// An array of floats, all 0 at first, aligned to cache lines, on huge pages where it holds some.
/// Its pages lie near the thread that makes it.
/// Threads: what the user of the span does.
class FloatBuffer {
 public:
  FloatBuffer() = default;
  explicit FloatBuffer(std::size_t size)
      : data_(static_cast<float*>(::operator new[](size * sizeof(float), kAlignment))),
        size_(size) {
    PreferHugePages(data_.get(), size_ * sizeof(float));
    std::fill_n(data_.get(), size_, 0.0f);
  }

  [[nodiscard]] std::span<float> span() { return {data_.get(), size_}; }
  [[nodiscard]] std::span<const float> span() const { return {data_.get(), size_}; }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Free {
    void operator()(float* data) const { ::operator delete[](data, kAlignment); }
  };

  std::unique_ptr<float[], Free> data_;
  std::size_t size_ = 0;
};

}  // namespace adamant::worker
