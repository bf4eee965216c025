#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

struct evp_pkey_st;

namespace adamant::security {

/// The most bytes of a set of keys.
inline constexpr std::size_t kMostKeysBytes = 64 << 10;

/// The public keys with which a cluster signs its tokens (RFC 7517): RSA of 2048 to 8192 bits, and
/// P-256. Threads: any.
class JsonWebKeys {
 public:
  enum class Algorithm : std::uint8_t { kRs256, kEs256 };

  struct Key {
    Algorithm algorithm;  ///< the only one that it is for
    std::shared_ptr<evp_pkey_st> key;
  };

  /// Reads a set. Keys of other kinds and for other uses are passed over, as are those without a
  /// name. Errors: InvalidArgument for what is no set, too long, or has no key for us.
  static absl::StatusOr<JsonWebKeys> Parse(std::string_view json);

  /// Returns the key of this name (`kid`); null: there is none.
  [[nodiscard]] const Key* Find(std::string_view name) const;

 private:
  std::map<std::string, Key, std::less<>> keys_;
};

}  // namespace adamant::security
