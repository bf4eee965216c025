#pragma once

#include "operator/core/messages.h"
#include "services/parameter_server/core/replication/messages.h"

namespace adamant::replication_simulation {

inline parameter_server::Holder FromController(const controller::Holder& holder) {
  return {holder.slot, holder.incarnation};
}

inline controller::Holder ToController(const parameter_server::Holder& holder) {
  return {holder.slot, holder.incarnation};
}

parameter_server::Configuration FromController(const controller::Bucket& record);
controller::Proposal ToController(const parameter_server::Proposal& proposal);

}  // namespace adamant::replication_simulation
