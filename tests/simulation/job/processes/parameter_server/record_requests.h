#pragma once

#include <cstdint>
#include <string>

#include "services/parameter_server/core/serving/parameter_server.h"
#include "tests/simulation/job/network/network.h"
#include "tests/simulation/job/processes/member_process.h"
#include "tests/simulation/job/processes/world.h"

namespace adamant::simulation {

/// What data servers ask of a parameter server: to read and to write records. Mirrors
/// services/parameter_server/rpc/record_methods.h.
/// Threads: one.
class RecordRequests {
 public:
  /// `owner` answers. All must outlive this.
  RecordRequests(World& world, MemberProcess& owner, parameter_server::ParameterServer& core)
      : world_(world), owner_(owner), core_(core) {}

  void OnGet(StreamId stream, const GetRecord& get);
  void OnPut(StreamId stream, const PutRecord& put);

 private:
  [[nodiscard]] bool IsPrimary(const std::string& key) const;
  [[nodiscard]] bool IsOvertaken(const std::string& key, std::uint64_t version) const;
  void SeeLedger(const std::string& key, std::uint64_t version, const std::string& value);

  World& world_;
  MemberProcess& owner_;
  parameter_server::ParameterServer& core_;
};

}  // namespace adamant::simulation
