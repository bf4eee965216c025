#pragma once

#include <cstdint>
#include <functional>
#include <map>

namespace adamant::worker {

/// System calls by their number.
using SystemCalls = std::map<std::int64_t, std::uint64_t>;

/// Delimits what TraceSystemCalls counts.
class CountSystemCalls {
 public:
  CountSystemCalls();
  ~CountSystemCalls();
  CountSystemCalls(const CountSystemCalls&) = delete;
  CountSystemCalls& operator=(const CountSystemCalls&) = delete;
};

/// Runs `work` in a child process of one thread, traced with ptrace, and returns the system calls
/// that it makes while a CountSystemCalls lives. Fails the test if the child does not exit with 0.
SystemCalls TraceSystemCalls(const std::function<void()>& work);

}  // namespace adamant::worker
