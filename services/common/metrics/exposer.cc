#include "services/common/metrics/exposer.h"

#include <arpa/inet.h>
#include <prometheus/exposer.h>
#include <prometheus/registry.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <map>
#include <stop_token>
#include <thread>
#include <utility>

#include "services/common/metrics/registry_impl.h"

namespace adamant::metrics {
namespace {

// Connects to `address` and hangs up.
void Knock(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + colon + 1)));
  if (inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr) != 1) {
    return;
  }
  const int file = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (file >= 0) {
    // Whether it succeeds does not matter.
    (void)connect(file, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer));
    close(file);
  }
}

}  // namespace

struct Exposer::Impl {
  std::shared_ptr<prometheus::Registry> registry;  // the library keeps only a weak reference
  std::map<std::string, std::shared_ptr<prometheus::Registry>> answered;  // by path; all empty
  std::unique_ptr<prometheus::Exposer> exposer;
};

Exposer::Exposer(std::string address, std::unique_ptr<Impl> impl)
    : address_(std::move(address)), impl_(std::move(impl)) {}

// The library's server looks whether it should stop every two seconds, or when somebody connects.
Exposer::~Exposer() {
  const std::jthread visitor([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      Knock(address_);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  });
  impl_->exposer.reset();
}

void Exposer::Answer(const std::string& path, bool yes) {
  const auto known = impl_->answered.find(path);
  if (yes && known == impl_->answered.end()) {
    const auto nothing = std::make_shared<prometheus::Registry>();
    impl_->exposer->RegisterCollectable(nothing, path);
    impl_->answered.emplace(path, nothing);
  } else if (!yes && known != impl_->answered.end()) {
    impl_->exposer->RemoveCollectable(known->second, path);
    impl_->answered.erase(known);
  }
}

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
