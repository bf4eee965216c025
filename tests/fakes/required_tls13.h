#pragma once

#include "services/common/rpc/tls/tls13.h"

namespace adamant::fakes {

/// A test that includes this requires TLS 1.3, as programs do: before main, so before gRPC starts.
inline const bool kTls13IsRequired = [] {
  rpc::RequireTls13();
  return true;
}();

}  // namespace adamant::fakes
