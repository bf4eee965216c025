#include "tests/simulation/replication/convert.h"

#include <optional>

namespace adamant::replication_simulation {
namespace {

std::optional<parameter_server::Holder> IfNamed(const std::optional<controller::Holder>& holder) {
  if (!holder.has_value()) {
    return std::nullopt;
  }
  return FromController(*holder);
}

}  // namespace

parameter_server::Configuration FromController(const controller::Bucket& record) {
  parameter_server::Configuration configuration{.epoch = record.epoch,
                                                .generation = record.generation,
                                                .primary = FromController(record.primary),
                                                .created = record.created,
                                                .learner = IfNamed(record.learner),
                                                .leaver = IfNamed(record.leaver),
                                                .heir = IfNamed(record.heir)};
  for (const controller::Holder& member : record.members) {
    configuration.members.push_back(FromController(member));
  }
  return configuration;
}

controller::Proposal ToController(const parameter_server::Proposal& proposal) {
  controller::Proposal converted{.bucket = proposal.bucket,
                                 .epoch = proposal.epoch,
                                 .proposer = ToController(proposal.proposer),
                                 .subject = ToController(proposal.subject),
                                 .last_lsn = proposal.last_lsn,
                                 .released = proposal.released};
  switch (proposal.kind) {
    case parameter_server::Proposal::Kind::kTakeOver:
      converted.kind = controller::Proposal::Kind::kTakeOver;
      break;
    case parameter_server::Proposal::Kind::kDrop:
      converted.kind = controller::Proposal::Kind::kDrop;
      break;
    case parameter_server::Proposal::Kind::kAdd:
      converted.kind = controller::Proposal::Kind::kAdd;
      break;
  }
  return converted;
}

}  // namespace adamant::replication_simulation
