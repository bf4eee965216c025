#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/kubectl/cluster/session.h"
#include "operator/cli/kubectl/output/output_index.h"

// Fetches the files that an output pod serves, through the API server.
namespace adamant::kubectl {

/// Returns where a pod serves: the proxy's path of it, with the key.
std::string OutputPath(const kube::ObjectKey& pod, const std::string& key);

/// Lists the files. Errors: those of the client; Unavailable while the pod does not listen;
/// DataLoss where its list makes no sense.
absl::StatusOr<std::vector<OutputFile>> FetchIndex(const Session& session, const std::string& path);

/// Called with the bytes that have come so far.
using OnBytes = std::function<void(std::uint64_t bytes)>;

/// Fetches a file into `folder`, piece by piece, each compared with its checksum and fetched again
/// where it differs. The file has its name only when it is whole; where a link has that name, it is
/// followed. Errors: those of the client and of the file system; DataLoss when a piece stays wrong;
/// FailedPrecondition when a device, a pipe or the like has the name.
absl::Status FetchFile(const Session& session,
                       const std::string& path,
                       const OutputFile& file,
                       const std::filesystem::path& folder,
                       const OnBytes& on_bytes);

}  // namespace adamant::kubectl
