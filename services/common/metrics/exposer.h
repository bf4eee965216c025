#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "services/common/metrics/metrics.h"

namespace adamant::metrics {

/// Serves a registry at http://ADDRESS/metrics until destroyed.
class Exposer {
 public:
  /// `address` is host:port; port 0: the kernel chooses. `registry` must outlive the exposer.
  /// Errors: Unavailable when the address cannot be bound, naming it.
  static absl::StatusOr<std::unique_ptr<Exposer>> Start(const std::string& address,
                                                        const Registry& registry);
  ~Exposer();

  /// Whether GET `path` is answered with 200 from now on, else 404: for probes.
  void Answer(const std::string& path, bool yes);

  /// host:port with the port in use.
  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  struct Impl;
  Exposer(std::string address, std::unique_ptr<Impl> impl);

  const std::string address_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace adamant::metrics
