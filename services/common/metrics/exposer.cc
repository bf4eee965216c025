#include "services/common/metrics/exposer.h"

#include <prometheus/exposer.h>
#include <prometheus/registry.h>

#include <exception>
#include <utility>

#include "services/common/metrics/registry_impl.h"

namespace adamant::metrics {

struct Exposer::Impl {
  std::shared_ptr<prometheus::Registry> registry;  // the library keeps only a weak reference
  std::unique_ptr<prometheus::Exposer> exposer;
};

Exposer::Exposer(std::string address, std::unique_ptr<Impl> impl)
    : address_(std::move(address)), impl_(std::move(impl)) {}

Exposer::~Exposer() = default;

absl::StatusOr<std::unique_ptr<Exposer>> Exposer::Start(const std::string& address,
                                                        const Registry& registry) {
  auto impl = std::make_unique<Impl>();
  impl->registry = registry.impl_->registry;
  try {
    impl->exposer = std::make_unique<prometheus::Exposer>(address, /*num_threads=*/1);
    impl->exposer->RegisterCollectable(impl->registry);
    const std::string host = address.substr(0, address.rfind(':'));
    const int port = impl->exposer->GetListeningPorts().at(0);
    return std::unique_ptr<Exposer>(
        new Exposer(host + ":" + std::to_string(port), std::move(impl)));
  } catch (const std::exception& error) {
    return absl::UnavailableError("cannot serve metrics on " + address + ": " + error.what() +
                                  " (is the port taken?)");
  }
}

}  // namespace adamant::metrics
