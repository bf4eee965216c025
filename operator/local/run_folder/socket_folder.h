#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "operator/core/state/actions.h"
#include "operator/local/run_folder/run_paths.h"

namespace adamant::local {

/// The folder of a run's Unix sockets, which no other user may enter: nobody else can connect to
/// the run's processes. It is outside the run, as paths of sockets are short, and gone with this;
/// that of a program that was killed stays until the run goes on.
/// Threads: const members from any; who moves or destroys it is alone with it.
class SocketFolder {
 public:
  /// Makes one in the first of `parents` that will do: which exists, has a short and plain path,
  /// and where no other user can put another folder in its place. Removes the one that `paths`
  /// names as its endpoint, unless a program uses it. The caller holds the run's lock.
  /// Error: Unavailable, saying of each parent why it will not do.
  static absl::StatusOr<SocketFolder> Make(const RunPaths& paths,
                                           const std::vector<std::filesystem::path>& parents);

  /// Returns where to make it: in $TMPDIR if that is set, in /tmp, in the run's folder.
  static std::vector<std::filesystem::path> Parents(const RunPaths& paths);

  ~SocketFolder();
  SocketFolder(SocketFolder&& other) noexcept;
  SocketFolder& operator=(SocketFolder&& other) noexcept;

  /// Of the controller.
  [[nodiscard]] std::string address() const;

  /// Adds the flags of a service: where it is to listen. Each generation has sockets of its own.
  void AddFlags(controller::SlotId id,
                std::uint64_t generation,
                std::vector<std::string>& flags) const;

 private:
  SocketFolder(std::filesystem::path path, int lock) : path_(std::move(path)), lock_(lock) {}

  std::filesystem::path path_;
  int lock_;  // of the open folder: locked as long as it is in use; -1: moved from
};

}  // namespace adamant::local
