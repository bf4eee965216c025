#pragma once

#include <cstdint>

namespace adamant::parameter_server {

/// Role of a replica in its configuration.
enum class ReplicaRole : std::uint8_t {
  kNone,         ///< not a server
  kLearner,      ///< being copied to
  kSecondary,    ///< follows the primary and has its content
  kProposing,    ///< secondary that has proposed to take over, and promises nobody
  kLoading,      ///< primary, whose content is not there yet
  kReconciling,  ///< primary, committing under its configuration what it took over
  kServing,      ///< primary
  kDraining,     ///< primary that hands over
};

}  // namespace adamant::parameter_server
