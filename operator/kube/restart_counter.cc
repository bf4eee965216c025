#include "operator/kube/restart_counter.h"

#include <algorithm>

#include "proto/adamant/v1/resources.pb.h"

namespace adamant::kube {

using controller::Role;

void RestartCounter::StartFrom(const v1::TrainingJobStatus& told, std::uint32_t counted) {
  const v1::RolesStatus& roles = told.roles();
  by_role_ = {{Role::kWorker, roles.worker().restarts()},
              {Role::kDataServer, roles.data_server().restarts()},
              {Role::kParameterServer, roles.parameter_server().restarts()}};
  before_ = std::max<std::int64_t>(0, told.restarts() - counted);
  counted_ = counted;
}

void RestartCounter::Fill(std::uint32_t counted, v1::TrainingJobStatus& status) {
  if (counted < counted_) {  // it was resumed
    before_ += counted_;
  }
  counted_ = counted;
  status.set_restarts(before_ + counted);
  v1::RolesStatus& roles = *status.mutable_roles();
  roles.mutable_worker()->set_restarts(by_role_[Role::kWorker]);
  roles.mutable_data_server()->set_restarts(by_role_[Role::kDataServer]);
  roles.mutable_parameter_server()->set_restarts(by_role_[Role::kParameterServer]);
}

}  // namespace adamant::kube
