#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "services/common/storage/memory_store.h"
#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/fakes/fake_clock.h"

namespace adamant::parameter_server {

/// Leaves everything to the test.
class IdleDriver final : public Driver {
 public:
  void SendToPeer(const ServerId& /*to*/, PeerMessage /*message*/) override {}
  void Propose(const Proposal& /*proposal*/) override {}
  void Report(const BucketReport& /*report*/) override {}
  void WantApply() override {}
  void WantStorage() override {}
};

/// A core without peers, primary of all buckets, in configuration 1.
class LoneServer {
 public:
  explicit LoneServer(ParameterServerOptions options)
      : core_(std::move(options), store_, clock_, driver_) {
    EXPECT_TRUE(core_.ReadStored().ok());
    Configuration record{.version = 1,
                         .generation = 1,
                         .primary = core_.options().self,
                         .replicas = {core_.options().self}};
    Configure(record);
    record.created = true;
    Configure(record);
  }

  void Configure(const Configuration& configuration) {
    core_.SetConfigurations(std::vector(core_.layout().buckets(), configuration), {});
    EXPECT_TRUE(core_.DoStorage().ok());
  }

  ParameterServer& core() { return core_; }

 private:
  storage::MemoryStore store_;
  FakeClock clock_;
  IdleDriver driver_;
  ParameterServer core_;
};

}  // namespace adamant::parameter_server
