#pragma once

#include <string>
#include <utility>

namespace adamant::simulation {

/// The first promise that was seen broken.
class Violations {
 public:
  void Report(std::string what) {
    if (first_.empty()) {
      first_ = std::move(what);
    }
  }

  /// Empty: none.
  [[nodiscard]] const std::string& first() const { return first_; }

 private:
  std::string first_;
};

}  // namespace adamant::simulation
