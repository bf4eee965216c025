#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/kube_client/auth/config.h"

namespace adamant::kube {

/// Reads kubeconfig files and returns what the context named `context` (empty: the current one)
/// says. Files are merged as kubectl merges $KUBECONFIG: for each context, cluster and user, and
/// for current-context, the first file that has it wins as a whole. Relative paths are relative to
/// the file that they stand in. At least one of `files` must exist; the others may be missing.
/// Errors: InvalidArgument, "FILE:LINE: field: what is wrong and what to do"; NotFound when there
/// is no file; Unavailable when one cannot be read.
absl::StatusOr<Config> ReadKubeconfig(const std::vector<std::filesystem::path>& files,
                                      std::string_view context);

}  // namespace adamant::kube
