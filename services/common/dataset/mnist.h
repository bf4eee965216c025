#pragma once

#include <functional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace adamant::dataset {

struct MnistOptions {
  /// Folders that hold the four files, tried in order: URLs that `curl` understands.
  std::vector<std::string> mirrors = {"https://storage.googleapis.com/cvdf-datasets/mnist",
                                      "https://ossci-datasets.s3.amazonaws.com/mnist"};
};

/// Called before a file is fetched, with its name.
using MnistProgress = std::function<void(const std::string& file)>;

/// Fetches the four files of MNIST into `folder`, which it creates, by the program `curl`. Each is
/// compared with its published SHA-256 before it appears under its name; a file that is there and
/// right is not fetched again. The result is where MnistPaths points.
/// Threads: any, not twice on one folder.
/// Errors: Unavailable when no mirror could be reached, with curl's last message; DataLoss when all
/// that were reached gave a wrong file; FailedPrecondition when there is no `curl`; those of the
/// file system.
absl::Status FetchMnist(const std::string& folder,
                        const MnistOptions& options = {},
                        const MnistProgress& progress = {});

}  // namespace adamant::dataset
