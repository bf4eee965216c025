#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/base/mutex.h"

namespace adamant::parameter_server {

/// Damage that was found on a disk: a text for each file, of the first 16.
/// Threads: any.
class DamageLog {
 public:
  /// `problem`: as a store says it, the file's path first and then ": "; later ones of the same
  /// file add nothing. `then`: what becomes of it.
  void Add(std::string_view problem, std::string_view then) {
    const std::string_view file = problem.substr(0, problem.find(": "));
    const MutexLock lock(mutex_);
    if (files_.size() < kMost && std::ranges::find(files_, file) == files_.end()) {
      files_.emplace_back(file);
      texts_.push_back(std::string(problem) + "; " + std::string(then));
    }
  }

  /// In the order in which they were found.
  [[nodiscard]] std::vector<std::string> texts() const {
    const MutexLock lock(mutex_);
    return texts_;
  }

 private:
  static constexpr std::size_t kMost = 16;  // a disk that fails fills no heartbeats

  mutable Mutex mutex_;
  std::vector<std::string> files_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::string> texts_ ABSL_GUARDED_BY(mutex_);  // of each of them
};

}  // namespace adamant::parameter_server
