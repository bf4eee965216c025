#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

namespace adamant::controller {

/// Format version of what is stored of a job.
inline constexpr std::uint64_t kStateFormatVersion = 18;

/// Calls `codec` with each field of `value` in turn, in the order in which they are stored.
template <class Codec, class Value>
void Walk(Codec& codec, Value& value);

/// Appends the fields of a stored state: integers of eight bytes, little-endian, texts and lists
/// behind their size. Threads: one thread at a time.
class StateWriter {
 public:
  void Field(std::uint64_t value) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes_.push_back(static_cast<char>(value >> shift));
    }
  }
  void Field(double value) { Field(std::bit_cast<std::uint64_t>(value)); }
  void Field(const std::string& value) {
    Field(std::uint64_t{value.size()});
    bytes_ += value;
  }
  template <class T>
  void Field(const std::vector<T>& values) {
    Field(std::uint64_t{values.size()});
    for (const T& value : values) {
      Walk(*this, value);
    }
  }

  [[nodiscard]] std::string& bytes() { return bytes_; }
  [[nodiscard]] static std::uint64_t version() { return kStateFormatVersion; }

 private:
  std::string bytes_;
};

}  // namespace adamant::controller
