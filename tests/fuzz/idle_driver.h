#pragma once

#include "services/parameter_server/core/driver.h"

namespace adamant::fuzz {

/// Sends nothing; the target does all that is wanted.
class IdleDriver final : public parameter_server::Driver {
 public:
  void SendToPeer(const parameter_server::ServerId& /*to*/,
                  parameter_server::PeerMessage /*message*/) override {}
  void Propose(const parameter_server::Proposal& /*proposal*/) override {}
  void Report(const parameter_server::BucketReport& /*report*/) override {}
  void WantApply() override {}
  void WantStorage() override {}
};

}  // namespace adamant::fuzz
