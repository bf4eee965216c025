#pragma once

#include <memory>

#include "services/common/metrics/metrics.h"

namespace prometheus {
class Registry;
}  // namespace prometheus

namespace adamant::metrics {

struct Registry::Impl {
  std::shared_ptr<prometheus::Registry> registry;
};

}  // namespace adamant::metrics
