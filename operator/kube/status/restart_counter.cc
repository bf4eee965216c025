#include "operator/kube/status/restart_counter.h"

#include <algorithm>
#include <utility>

#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {

using controller::LossReason;
using controller::Role;

namespace {

// The field of each cause.
struct CauseField {
  LossReason cause;
  std::int64_t (v1::RestartCauses::*get)() const;
  void (v1::RestartCauses::*set)(std::int64_t);
};

constexpr CauseField kFields[] = {
    {LossReason::kFailed, &v1::RestartCauses::failed, &v1::RestartCauses::set_failed},
    {LossReason::kOutOfMemory,
     &v1::RestartCauses::out_of_memory,
     &v1::RestartCauses::set_out_of_memory},
    {LossReason::kEvicted, &v1::RestartCauses::evicted, &v1::RestartCauses::set_evicted},
    {LossReason::kNodeLost, &v1::RestartCauses::node_lost, &v1::RestartCauses::set_node_lost},
    {LossReason::kUnresponsive,
     &v1::RestartCauses::unresponsive,
     &v1::RestartCauses::set_unresponsive},
    {LossReason::kDeleted, &v1::RestartCauses::deleted, &v1::RestartCauses::set_deleted}};

}  // namespace

std::int64_t RestartsOf(const v1::RoleStatus& told, LossReason cause) {
  const auto* const field = std::ranges::find(kFields, cause, &CauseField::cause);
  return (told.restart_causes().*field->get)();
}

RestartCounter::OfRole RestartCounter::Read(const v1::RoleStatus& told) {
  OfRole read{.all = told.restarts()};
  for (const LossReason cause : controller::kLossReasons) {
    if (const std::int64_t count = RestartsOf(told, cause); count > 0) {
      read.by_cause[cause] = count;
    }
  }
  return read;
}

void RestartCounter::Write(const OfRole& restarts, v1::RoleStatus& status) {
  status.set_restarts(restarts.all);
  for (const CauseField& field : kFields) {
    if (const auto count = restarts.by_cause.find(field.cause); count != restarts.by_cause.end()) {
      (status.mutable_restart_causes()->*field.set)(count->second);
    }
  }
}

void RestartCounter::StartFrom(const v1::TrainingJobStatus& told, std::uint32_t counted) {
  const v1::RolesStatus& roles = told.roles();
  by_role_ = {{Role::kWorker, Read(roles.worker())},
              {Role::kDataServer, Read(roles.data_server())},
              {Role::kParameterServer, Read(roles.parameter_server())}};
  before_ = std::max<std::int64_t>(0, told.restarts() - counted);
  counted_ = counted;
}

void RestartCounter::OnRestart(Role role, LossReason cause) {
  ++by_role_[role].all;
  ++by_role_[role].by_cause[cause];
}

void RestartCounter::Fill(std::uint32_t counted, v1::TrainingJobStatus& status) {
  if (counted < counted_) {  // it was resumed
    before_ += counted_;
  }
  counted_ = counted;
  status.set_restarts(before_ + counted);
  v1::RolesStatus& roles = *status.mutable_roles();
  Write(by_role_[Role::kWorker], *roles.mutable_worker());
  Write(by_role_[Role::kDataServer], *roles.mutable_data_server());
  Write(by_role_[Role::kParameterServer], *roles.mutable_parameter_server());
}

}  // namespace adamant::kube
