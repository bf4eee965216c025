#include "operator/kube/volumes/claim_size.h"

#include <algorithm>
#include <numeric>

#include "operator/control/job_settings.h"
#include "proto/adamant/v1/job.pb.h"

namespace adamant::kube {
namespace {

constexpr std::uint64_t kMebibyte = std::uint64_t{1} << 20;
constexpr std::uint64_t kGibibyte = std::uint64_t{1} << 30;
constexpr std::uint64_t kUnknown = 10 * kGibibyte;  // of a model whose size nobody knows
constexpr std::uint64_t kTimes = 10;
constexpr std::uint64_t kMost = std::uint64_t{1} << 52;  // as the schema allows

bool HasStateOnServers(const v1::Optimiser& optimiser) {
  return optimiser.location() == v1::Optimiser::LOCATION_SERVER &&
         optimiser.kind() != v1::Optimiser::KIND_SGD;
}

}  // namespace

std::int64_t ServerClaimBytes(const v1::TrainingJob& job) {
  const v1::ParameterServers& servers = job.spec().distribution().parameter_servers();
  if (servers.storage().has_size()) {
    return servers.storage().size();
  }
  const controller::JobSettings settings = control::SettingsOf(job);
  if (settings.bucket_bytes.empty()) {
    return static_cast<std::int64_t>(kUnknown);
  }
  // The sizes of models are checked long before: a sum of them is far from 2^64.
  const std::uint64_t parameters =
      std::accumulate(settings.bucket_bytes.begin(), settings.bucket_bytes.end(), std::uint64_t{0});
  const std::uint64_t values = HasStateOnServers(job.spec().optimiser()) ? 2 : 1;
  const std::uint64_t held =
      std::min(parameters, kMost) / settings.parameter_servers * settings.copies * values;
  const std::uint64_t bytes = std::min(kMost, kGibibyte + kTimes * held);
  return static_cast<std::int64_t>((bytes + kMebibyte - 1) / kMebibyte * kMebibyte);
}

}  // namespace adamant::kube
