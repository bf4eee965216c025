#include "services/parameter_server/rpc/record_methods.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "proto/adamant/v1/parameter_server.pb.h"
#include "tests/unit/services/common/security/certified.h"
#include "tests/unit/services/parameter_server/rpc/lone_server.h"

namespace adamant::parameter_server {
namespace {

using security::PeerIdentity;
using security::Role;

constexpr std::uint64_t kJob = 7;

class RecordMethodsTest : public testing::Test {
 protected:
  RecordMethodsTest() { gate_.Open(server_.core()); }

  // What becomes of a write whose client does not wait for more than permission.
  absl::Status Put(const std::string& key, const PeerIdentity* caller) {
    v1::PutRecordRequest request;
    request.set_job_uid(kJob);
    request.set_key(key);
    return methods_[1]
        .handler(request.SerializeAsString(),
                 {.cancelled = [] { return true; }, .identity = caller})
        .status();
  }

  absl::Status Get(const std::string& key, const PeerIdentity* caller) {
    v1::GetRecordRequest request;
    request.set_job_uid(kJob);
    request.set_key(key);
    return methods_[0]
        .handler(request.SerializeAsString(),
                 {.cancelled = [] { return false; }, .identity = caller})
        .status();
  }

  LoneServer server_{{.job_uid = kJob}};
  CoreGate gate_;
  service::MemberGenerations members_;
  const std::vector<rpc::UnaryMethod> methods_ =
      RecordMethods(gate_, members_, [](std::uint32_t part) -> std::optional<std::uint32_t> {
        return part < 2 ? std::optional(part + 5) : std::nullopt;  // data servers 5 and 6
      });
};

TEST_F(RecordMethodsTest, ADataServerWritesRecordsOfItsOwnParts) {
  const PeerIdentity own = security::As(Role::kDataServer, 6);
  const PeerIdentity other = security::As(Role::kDataServer, 5);
  EXPECT_FALSE(absl::IsPermissionDenied(Put("ledger/1", &own)));
  EXPECT_TRUE(absl::IsPermissionDenied(Put("ledger/1", &other)));
  EXPECT_FALSE(absl::IsPermissionDenied(Put("ledger/1", nullptr)));
}

TEST_F(RecordMethodsTest, ADataServerThatWasReplacedDoesNot) {
  const PeerIdentity own = security::As(Role::kDataServer, 6);
  members_.Set(
      {.role = own.role, .slot = own.slot, .incarnation = 2, .generation = own.generation});
  EXPECT_FALSE(absl::IsPermissionDenied(Put("ledger/1", &own)));
  members_.Set(
      {.role = own.role, .slot = own.slot, .incarnation = 3, .generation = own.generation + 1});
  EXPECT_TRUE(absl::IsPermissionDenied(Put("ledger/1", &own)));
}

TEST_F(RecordMethodsTest, WhatIsNoPartIsNobodys) {
  const PeerIdentity own = security::As(Role::kDataServer, 6);
  for (const char* key : {"ledger/2", "ledger/", "ledger/1x", "ledger/-1", "other/1", "1", ""}) {
    EXPECT_TRUE(absl::IsPermissionDenied(Put(key, &own))) << key;
  }
}

TEST_F(RecordMethodsTest, AllDataServersRead) {
  const PeerIdentity other = security::As(Role::kDataServer, 5);
  const absl::Status status = Get("ledger/1", &other);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace
}  // namespace adamant::parameter_server
