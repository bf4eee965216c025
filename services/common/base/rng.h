#pragma once

#include <cstdint>
#include <limits>

namespace adamant {

/// Mixes 64 bits into 64 well-spread bits; a bijection.
/// Source: Vigna, the finaliser of SplitMix64.
constexpr std::uint64_t Mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// Combines values into one seed: `MixSeed(seed, epoch, index)`. The order of the arguments
/// matters.
constexpr std::uint64_t MixSeed(std::uint64_t seed) { return Mix64(seed); }
template <class... Rest>
constexpr std::uint64_t MixSeed(std::uint64_t seed, std::uint64_t next, Rest... rest) {
  return MixSeed(Mix64(seed) ^ next, static_cast<std::uint64_t>(rest)...);
}

/// A small generator whose sequence depends on the seed alone, on every platform and compiler (the
/// distributions of the standard library do not promise that). Satisfies UniformRandomBitGenerator.
/// Threads: one thread at a time.
/// Source: Blackman and Vigna 2018, xoshiro256++.
class Rng {
  __extension__ using Uint128 = unsigned __int128;

 public:
  using result_type = std::uint64_t;

  explicit Rng(std::uint64_t seed) {
    for (std::uint64_t& word : state_) {
      seed = Mix64(seed);
      word = seed;
    }
  }

  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<result_type>::max(); }

  result_type operator()() {
    const std::uint64_t result = Rotate(state_[0] + state_[3], 23) + state_[0];
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = Rotate(state_[3], 45);
    return result;
  }

  /// A uniform integer in [0, bound); `bound` > 0. The bias is below bound / 2^64.
  std::uint64_t Below(std::uint64_t bound) {
    return static_cast<std::uint64_t>((static_cast<Uint128>((*this)()) * bound) >> 64);
  }

  /// A uniform number in [0, 1).
  double Uniform() { return static_cast<double>((*this)() >> 11) * 0x1.0p-53; }

  /// A uniform number in [low, high).
  double Uniform(double low, double high) { return low + (high - low) * Uniform(); }

  /// A normal number with mean 0 and standard deviation 1 (Box-Muller; two draws a call).
  double Normal();

 private:
  static constexpr std::uint64_t Rotate(std::uint64_t x, int k) {
    return (x << k) | (x >> (64 - k));
  }

  std::uint64_t state_[4];
};

}  // namespace adamant
