#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/rpc/tls/member_security.h"
#include "services/common/tensor/shard_layout.h"

namespace adamant::local {

/// Place where the parameters are to be had.
struct ModelSource {
  std::uint64_t job_uid = 0;
  std::uint64_t snapshot = 0;
  std::vector<std::string> servers;    ///< addresses of the parameter servers, by slot; empty: away
  std::vector<std::uint32_t> holders;  ///< slot of the parameter server that is asked, by bucket
  /// Of the copies that are meant, by bucket: then each holder gives its own, primary or not.
  /// Empty: the holders are the primaries, and give what they have under the number.
  std::vector<std::uint64_t> checksums{};

  rpc::MemberSecurity security{};  ///< of the ways to them
};

/// Fetches all parameters of a snapshot: float32, tensor after tensor in the order and layout of
/// `layout`. Threads: any. Errors: NotFound when a server does not have the snapshot; Unavailable
/// when one is away or cannot be reached; DataLoss when an answer does not fit, or the source names
/// too few buckets.
absl::StatusOr<std::vector<float>> FetchModel(const ModelSource& source, const ShardLayout& layout);

}  // namespace adamant::local
