#include "services/common/service/member_generations.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>

#include "services/common/protocol/control.h"
#include "tests/unit/services/common/security/identities.h"

namespace adamant::service {
namespace {

using security::kWorker;
using security::PeerIdentity;
using security::Role;

constexpr Incarnation kFirst = 3;
constexpr Incarnation kSecond = 4;

class MemberGenerationsTest : public testing::Test {
 protected:
  // The slot's process of this generation has joined.
  void Joins(Incarnation incarnation, std::uint64_t generation) {
    members_.Set({.role = kWorker.role,
                  .slot = kWorker.slot,
                  .incarnation = incarnation,
                  .generation = generation});
  }

  // What becomes of the hello of the slot's process of this generation.
  absl::StatusCode Hello(std::uint64_t generation, Incarnation incarnation) const {
    PeerIdentity caller = kWorker;
    caller.generation = generation;
    return members_.CheckHello(&caller, kWorker.slot, incarnation).code();
  }

  absl::StatusCode Present(std::uint64_t generation) const {
    PeerIdentity caller = kWorker;
    caller.generation = generation;
    return members_.CheckPresent(&caller).code();
  }

  MemberGenerations members_;
};

using enum absl::StatusCode;

TEST_F(MemberGenerationsTest, AHelloIsThatOfWhoHasJoined) {
  Joins(kFirst, 1);
  EXPECT_EQ(Hello(1, kFirst), kOk);
  EXPECT_EQ(Hello(2, kFirst), kPermissionDenied);
  EXPECT_EQ(Hello(0, kFirst), kPermissionDenied);
}

TEST_F(MemberGenerationsTest, WhoWasReplacedIsNotItsSuccessor) {
  Joins(kFirst, 1);
  Joins(kSecond, 2);
  EXPECT_EQ(Hello(1, kSecond), kPermissionDenied);
  EXPECT_EQ(Hello(1, kSecond + 1), kPermissionDenied);
  EXPECT_EQ(Hello(2, kSecond), kOk);
}

TEST_F(MemberGenerationsTest, AnotherSlotIsAnotherProcess) {
  Joins(kFirst, 1);
  PeerIdentity caller = kWorker;
  caller.generation = 1;
  EXPECT_TRUE(absl::IsPermissionDenied(members_.CheckHello(&caller, kWorker.slot + 1, kFirst)));
  caller.role = Role::kParameterServer;
  EXPECT_TRUE(absl::IsUnavailable(members_.CheckHello(&caller, kWorker.slot, kFirst)));
}

TEST_F(MemberGenerationsTest, WhoIsNotAMemberYetComesAgain) {
  EXPECT_EQ(Hello(1, kFirst), kUnavailable);
  Joins(kFirst, 1);
  EXPECT_EQ(Hello(2, kSecond), kUnavailable);
  EXPECT_EQ(Hello(1, kSecond), kUnavailable);  // it has crashed, and began again
  Joins(kSecond, 2);
  EXPECT_EQ(Hello(2, kSecond), kOk);
}

TEST_F(MemberGenerationsTest, TheOrderOfIncarnationsIsNotItsMatter) {
  Joins(kFirst, 1);
  Joins(kSecond, 2);
  EXPECT_EQ(Hello(1, kFirst), kOk);
}

TEST_F(MemberGenerationsTest, AControllerThatDoesNotSayGenerationsIsOfAnEarlierVersion) {
  Joins(kFirst, 0);
  EXPECT_EQ(Hello(7, kFirst), kOk);
  EXPECT_EQ(Hello(7, kSecond), kOk);
  Joins(kFirst, 7);  // one that says them leads
  EXPECT_EQ(Hello(6, kFirst), kPermissionDenied);
  Joins(kFirst, 0);
  EXPECT_EQ(Hello(6, kFirst), kPermissionDenied);
  Joins(kSecond, 0);
  EXPECT_EQ(Hello(8, kSecond), kOk);
}

TEST_F(MemberGenerationsTest, WhatWasSaidBeforeIsNotUndone) {
  Joins(kSecond, 2);
  Joins(kFirst, 1);
  EXPECT_EQ(Hello(1, kSecond), kPermissionDenied);
  EXPECT_EQ(Hello(2, kSecond), kOk);
}

TEST_F(MemberGenerationsTest, WhoWasReplacedIsNotPresent) {
  EXPECT_EQ(Present(1), kOk);
  Joins(kSecond, 2);
  EXPECT_EQ(Present(1), kPermissionDenied);
  EXPECT_EQ(Present(2), kOk);
  EXPECT_EQ(Present(3), kOk);  // started, and joins next
}

TEST_F(MemberGenerationsTest, RolesAreTakenFromTheControllersList) {
  const std::pair<protocol::Role, Role> roles[] = {
      {protocol::Role::kDataServer, Role::kDataServer},
      {protocol::Role::kParameterServer, Role::kParameterServer},
      {protocol::Role::kWorker, Role::kWorker}};
  for (const auto& [listed, role] : roles) {
    protocol::Membership membership;
    membership.members = {{.id = {.role = listed, .slot = 1}, .incarnation = 2, .generation = 4}};
    MemberGenerations members;
    members.SetAll(membership);
    PeerIdentity caller = kWorker;
    caller.role = role;
    caller.slot = 1;
    caller.generation = 4;
    EXPECT_TRUE(members.CheckHello(&caller, 1, 2).ok()) << security::RoleName(role);
  }
}

TEST_F(MemberGenerationsTest, WithoutTlsAnybodyIsWhoTheySay) {
  Joins(kFirst, 1);
  EXPECT_TRUE(members_.CheckHello(nullptr, kWorker.slot + 1, kSecond).ok());
  EXPECT_TRUE(members_.CheckPresent(nullptr).ok());
}

}  // namespace
}  // namespace adamant::service
