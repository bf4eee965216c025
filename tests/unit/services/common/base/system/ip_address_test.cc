#include "services/common/base/system/ip_address.h"

#include <gtest/gtest.h>

namespace adamant {
namespace {

TEST(CanonicalAddressTest, AllSpellingsOfAnAddressAreOne) {
  for (const char* spelling : {"fd00::5", "FD00::5", "fd00:0:0:0:0:0:0:5", "fd00:0::0005"}) {
    EXPECT_EQ(CanonicalAddress(spelling), "fd00::5") << spelling;
  }
  EXPECT_EQ(CanonicalAddress("10.0.0.7"), "10.0.0.7");
}

TEST(CanonicalAddressTest, AnAddressOfIpv4WithinIpv6IsThatOfIpv4) {
  EXPECT_EQ(CanonicalAddress("::ffff:10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(CanonicalAddress("::FFFF:0a00:0007"), "10.0.0.7");
}

TEST(CanonicalAddressTest, TheLinkOfAnAddressIsLeftOut) {
  EXPECT_EQ(CanonicalAddress("fe80::1%eth0"), "fe80::1");
}

TEST(CanonicalAddressTest, WhatIsNoAddressStaysAsItIs) {
  for (const char* text : {"", "node-1", "fd00::5::1", "[fd00::5]", "%", "node%eth0"}) {
    EXPECT_EQ(CanonicalAddress(text), text);
  }
}

}  // namespace
}  // namespace adamant
