#include "services/common/rpc/tls/tls13.h"

#include <cstdlib>

namespace adamant::rpc {

void RequireTls13() { setenv("GRPC_SSL_CIPHER_SUITES", "ECDHE-RSA-AES128-GCM-SHA256", 1); }

}  // namespace adamant::rpc
