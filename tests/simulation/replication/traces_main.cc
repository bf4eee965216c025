// Writes traces of simulated runs for tests/model/replay:
//
//   replication_traces FOLDER COUNT [FIRST_SEED]
//
// COUNT of the protocol as it is, "seed-N.trace", and for each of some faults of the protocol two
// in which the simulation saw it, "FAULT-N.trace".

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "tests/simulation/replication/run.h"

namespace adamant::replication_simulation {
namespace {

constexpr Mutation kFaults[] = {Mutation::kNoDeduplication,
                                Mutation::kLearnerNotJoint,
                                Mutation::kEarlyAdd,
                                Mutation::kMajorityCommits,
                                Mutation::kBadClock,
                                Mutation::kReadsWithoutLease,
                                Mutation::kReadsBeforeReconciled,
                                Mutation::kReleaseOnSuspicion};
constexpr std::uint64_t kTracesOfFault = 2;
constexpr std::uint64_t kMostSeeds = 3000;

bool Write(const std::string& path, const Trace& trace) {
  std::ofstream file(path);
  if ((file << trace.text).flush()) {
    return true;
  }
  std::fprintf(stderr, "cannot write %s\n", path.c_str());
  return false;
}

bool WriteTraces(const std::string& folder,
                 Mutation fault,
                 std::uint64_t count,
                 std::uint64_t first_seed) {
  std::string prefix = folder;
  prefix.append("/").append(fault == Mutation::kNone ? "seed" : NameOf(fault)).append("-");
  std::uint64_t written = 0;
  for (std::uint64_t seed = first_seed; written < count && seed < first_seed + kMostSeeds; ++seed) {
    const Trace trace = TraceSeed(seed, fault);
    const bool seen = fault == Mutation::kNone || !trace.violation.empty();
    if (trace.text.empty() || !seen) {
      continue;
    }
    if (!Write(prefix + std::to_string(seed) + ".trace", trace)) {
      return false;
    }
    ++written;
  }
  return true;
}

int Main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s FOLDER COUNT [FIRST_SEED]\n", argv[0]);
    return 2;
  }
  const std::uint64_t count = std::strtoull(argv[2], nullptr, 10);
  const std::uint64_t first_seed = argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 1;
  bool ok = WriteTraces(argv[1], Mutation::kNone, count, first_seed);
  for (const Mutation fault : kFaults) {
    ok = ok && WriteTraces(argv[1], fault, kTracesOfFault, first_seed);
  }
  return ok ? 0 : 1;
}

}  // namespace
}  // namespace adamant::replication_simulation

int main(int argc, char** argv) { return adamant::replication_simulation::Main(argc, argv); }
