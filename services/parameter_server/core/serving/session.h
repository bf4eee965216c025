#pragma once

#include <utility>
#include <vector>

#include "services/parameter_server/core/serving/parameter_server.h"

namespace adamant::parameter_server {

/// Holds the server's lock. When it goes, what became due under the lock is done without it:
/// answers are given, and the driver hears that there is something to apply unless this thread
/// will.
class ABSL_SCOPED_LOCKABLE ParameterServer::Session {
 public:
  enum class Apply { kHere, kElsewhere };

  explicit Session(ParameterServer& server, Apply apply = Apply::kElsewhere)
      ABSL_EXCLUSIVE_LOCK_FUNCTION(server.mutex_)
      : server_(server), apply_(apply) {
    server_.mutex_.Lock();
  }
  ~Session() ABSL_UNLOCK_FUNCTION();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

 private:
  ParameterServer& server_;
  const Apply apply_;
};

}  // namespace adamant::parameter_server
