#pragma once

#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>

/// Numbers that name things. Each has a type of its own: one is never taken for another.
namespace adamant {

/// A number of one kind. Made from, and read as, the plain integer without ceremony; another kind
/// of number does not convert to it, and is not compared with it.
/// Threads: as an integer.
template <class Tag, std::unsigned_integral T>
class Id {
 public:
  constexpr Id() = default;
  template <std::integral U>
  constexpr Id(U value) : value_(static_cast<T>(value)) {}  // NOLINT(google-explicit-constructor)

  constexpr operator T() const { return value_; }  // NOLINT(google-explicit-constructor)
  [[nodiscard]] constexpr T value() const { return value_; }

  constexpr Id& operator++() {
    ++value_;
    return *this;
  }
  constexpr Id operator++(int) { return Id(value_++); }
  template <std::integral U>
  constexpr Id& operator+=(U value) {
    value_ += static_cast<T>(value);
    return *this;
  }
  constexpr Id& operator--() {
    --value_;
    return *this;
  }

  friend constexpr bool operator==(Id, Id) = default;
  friend constexpr auto operator<=>(Id, Id) = default;
  template <std::integral U>
  friend constexpr bool operator==(Id id, U value) {
    return id.value_ == static_cast<T>(value);
  }
  template <std::integral U>
  friend constexpr auto operator<=>(Id id, U value) {
    return id.value_ <=> static_cast<T>(value);
  }

  // In JSON it is the plain number.
  template <class Json>
  friend void to_json(Json& json, Id id) {
    json = id.value_;
  }
  template <class Json>
  friend void from_json(const Json& json, Id& id) {
    id = json.template get<T>();
  }

 private:
  T value_ = 0;
};

template <class Tag, class OtherTag, class T, class U>
requires(!std::same_as<Tag, OtherTag>) bool operator==(Id<Tag, T>, Id<OtherTag, U>) = delete;
template <class Tag, class OtherTag, class T, class U>
requires(!std::same_as<Tag, OtherTag>) auto operator<=>(Id<Tag, T>, Id<OtherTag, U>) = delete;

/// A pass over the training data, from 1.
using DataEpoch = Id<struct DataEpochTag, std::uint64_t>;

/// Of a bucket's configuration: rises by one with every change of it, from 1.
using ConfigurationVersion = Id<struct ConfigurationVersionTag, std::uint64_t>;

/// Of the processes that have joined in a slot, from 1: the lower one is refused everywhere.
using Incarnation = Id<struct IncarnationTag, std::uint64_t>;

/// Of the updates of one worker's incarnation to one shard: 1, 2, 3, …
using Sequence = Id<struct SequenceTag, std::uint64_t>;

/// Of a shard, dense from 0 over all parameters.
using ShardId = Id<struct ShardTag, std::uint32_t>;

/// Of a bucket, dense from 0.
using BucketId = Id<struct BucketTag, std::uint32_t>;

}  // namespace adamant

template <class Tag, class T>
struct std::hash<adamant::Id<Tag, T>> {
  std::size_t operator()(adamant::Id<Tag, T> id) const noexcept {
    return std::hash<T>{}(id.value());
  }
};

template <class Tag, class T>
struct std::numeric_limits<adamant::Id<Tag, T>> : std::numeric_limits<T> {
  static constexpr adamant::Id<Tag, T> min() noexcept { return std::numeric_limits<T>::min(); }
  static constexpr adamant::Id<Tag, T> max() noexcept { return std::numeric_limits<T>::max(); }
};
