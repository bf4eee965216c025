#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/ids.h"

namespace adamant::controller {

/// Oldest format version that is still read.
inline constexpr std::uint64_t kOldestStateFormatVersion = 3;

/// Calls `codec` with each field of `value` in turn, in the order in which they are stored.
template <class Codec, class Value>
void Walk(Codec& codec, Value& value);

/// Takes in what a StateWriter has appended, perhaps of an earlier version. What is cut short, or
/// says that it is longer than it is, is read as nothing; Done tells. Threads: one thread at a
/// time.
class StateReader {
 public:
  /// `bytes` must outlive this.
  StateReader(std::string_view bytes, std::uint64_t version) : bytes_(bytes), version_(version) {}

  void Field(std::uint64_t& value) {
    value = 0;
    if (bytes_.size() < 8) {
      ok_ = false;
      return;
    }
    for (int i = 0; i < 8; ++i) {
      value |= std::uint64_t{static_cast<unsigned char>(bytes_[static_cast<std::size_t>(i)])}
               << (8 * i);
    }
    bytes_.remove_prefix(8);
  }
  template <class Tag, class T>
  void Field(Id<Tag, T>& id) {
    std::uint64_t value = 0;
    Field(value);
    id = value;
  }
  void Field(double& value) {
    std::uint64_t bits = 0;
    Field(bits);
    value = std::bit_cast<double>(bits);
  }
  void Field(std::string& value) {
    const std::uint64_t size = Size();
    value = std::string(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
  }
  template <class T>
  void Field(std::vector<T>& values) {
    values.assign(static_cast<std::size_t>(Size()), T{});
    for (T& value : values) {
      Walk(*this, value);
    }
  }

  /// All of it was read, and nothing was missing.
  [[nodiscard]] bool Done() const { return ok_ && bytes_.empty(); }
  [[nodiscard]] std::uint64_t version() const { return version_; }

 private:
  // A count of things that take at least a byte each, hence at most what is left.
  std::uint64_t Size() {
    std::uint64_t size = 0;
    Field(size);
    if (size > bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return size;
  }

  std::string_view bytes_;
  std::uint64_t version_;
  bool ok_ = true;
};

}  // namespace adamant::controller
