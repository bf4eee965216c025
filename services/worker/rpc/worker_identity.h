#pragma once

#include <cstdint>

#include "services/common/base/ids.h"
#include "services/common/base/system/job_attempt.h"
#include "services/common/rpc/tls/member_security.h"

namespace adamant::worker {

/// Identity of this worker.
struct WorkerIdentity {
  JobAttempt job = {};
  std::uint32_t slot = 0;
  Incarnation incarnation = 0;
  rpc::MemberSecurity security = {};  ///< by which it proves that
};

/// Introduces the worker to a server: `hello` is a v1::ExchangeHello or a v1::WorkHello, and
/// `format_version` the stream's.
template <class Hello>
void Introduce(const WorkerIdentity& identity, std::uint32_t format_version, Hello& hello) {
  hello.set_format_version(format_version);
  hello.set_job_uid(identity.job.job_uid);
  hello.set_attempt(identity.job.attempt);
  hello.set_worker_slot(identity.slot);
  hello.set_worker_incarnation(identity.incarnation);
}

}  // namespace adamant::worker
