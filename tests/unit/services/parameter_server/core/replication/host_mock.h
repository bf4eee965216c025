#pragma once

#include <gmock/gmock.h>

#include "services/common/base/ids.h"
#include "services/parameter_server/core/replication/replica_host.h"

namespace adamant::parameter_server {

class HostMock : public ReplicaHost {
 public:
  MOCK_METHOD(void, Send, (const ServerId& to, PeerMessage message), (override));
  MOCK_METHOD(void, Propose, (const Proposal& proposal), (override));
  MOCK_METHOD(void, Persist, (BucketId, const EntryPtr& entry, std::uint64_t ticket), (override));
  MOCK_METHOD(void, Commit, (BucketId, const EntryPtr& entry), (override));
  MOCK_METHOD(void, Load, (BucketId, bool create), (override));
  MOCK_METHOD(void, Serving, (BucketId), (override));
  MOCK_METHOD(void, Demoted, (BucketId), (override));
  MOCK_METHOD(void,
              StartCopy,
              (BucketId, const ServerId& learner, std::uint64_t copy, Lsn base),
              (override));
  MOCK_METHOD(void, StopCopy, (BucketId), (override));
  MOCK_METHOD(void, Learn, (BucketId, const CopyBegin& begin), (override));
  MOCK_METHOD(void, Clear, (BucketId), (override));
};

}  // namespace adamant::parameter_server
