#pragma once

// Ports at which the pods of jobs listen.
namespace adamant::kube {

inline constexpr int kMetricsPort = 7070;
inline constexpr int kServicePort = 7071;      ///< of a server, for processes of its job
inline constexpr int kReplicationPort = 7072;  ///< of a parameter server, for others of its job

}  // namespace adamant::kube
