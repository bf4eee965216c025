#pragma once

#include "services/parameter_server/core/driver.h"

namespace adamant::parameter_server {

/// Counts how often it is woken; all else gets lost.
class CountingDriver final : public Driver {
 public:
  void SendToPeer(const ServerId& /*to*/, PeerMessage /*message*/) override {}
  void Propose(const Proposal& /*proposal*/) override {}
  void Report(const BucketReport& /*report*/) override {}
  void WantApply() override { ++applies; }
  void WantStorage() override { ++storages; }

  int applies = 0;
  int storages = 0;
};

}  // namespace adamant::parameter_server
