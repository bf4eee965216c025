#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace adamant::controller {

/// A node, or where a parameter server runs.
struct NodePlace {
  std::string node{};
  std::string zone{};  ///< empty: not known
};

struct ServerPlace {
  std::uint32_t slot = 0;
  NodePlace at{};
};

/// The parameter server that is best made anew, so that servers share zones and nodes no more than
/// they must: one of those in the fullest zone, or on the fullest node, where another has room for
/// it to be the fuller one no more. `open`: the nodes that take pods; whether one has room for a
/// server nobody knows here. nullopt: servers are as far apart as can be. A function of its
/// arguments: after a move that it asks for it asks for none back.
std::optional<std::uint32_t> ServerToMove(std::span<const ServerPlace> servers,
                                          std::span<const NodePlace> open);

}  // namespace adamant::controller
