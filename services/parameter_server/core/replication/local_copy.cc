#include "services/parameter_server/core/replication/local_copy.h"

#include "services/common/base/failpoint.h"

namespace adamant::parameter_server {

void LocalCopy::BeginCopy(std::uint64_t copy, Lsn base, ConfigurationVersion origin) {
  has_content_ = false;
  copy_ = copy;
  log_.BeginAt(base, origin);
}

void LocalCopy::Keep(const EntryPtr& entry) {
  const std::uint64_t ticket = log_.Keep(entry);
  if (ticket != 0) {
    host_.Persist(bucket_, entry, ticket);
  }
}

void LocalCopy::CommitUpTo(Lsn limit) {
  while (log_.committed() < limit) {
    ADAMANT_FAILPOINT("replica/commit");
    host_.Commit(bucket_, log_.CommitNext());
  }
}

void LocalCopy::Clear() {
  has_content_ = false;
  copy_ = 0;
  log_.Clear();
}

}  // namespace adamant::parameter_server
