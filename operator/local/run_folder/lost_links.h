#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "operator/core/state/state.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::local {

/// Servers' folders that may be links, and how many of them have each bucket.
struct ServerFolders {
  std::uint32_t count = 0;   ///< of servers
  std::uint32_t copies = 1;  ///< of what is stored of a bucket
};

/// Returns those of a job. With None a bucket is stored once, in a checkpoint.
ServerFolders FoldersOf(const controller::JobSettings& settings);

/// Checks that a server's folder, and those of its store, are no links that lead nowhere, as to a
/// disk that is not mounted, in so many servers that all copies of a bucket may be behind them.
/// Where they are fewer, they are moved aside, and the others have what is there.
/// Error: DataLoss, naming the server's own link and saying what to do.
absl::Status CheckLinks(const RunPaths& paths, std::uint32_t server, const ServerFolders& folders);

}  // namespace adamant::local
