#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <vector>

#include "services/common/kernels/onednn/operation_onednn.h"
#include "services/common/kernels/product_speed.h"
#include "services/common/kernels/thread_mode.h"

namespace adamant::kernels {
namespace {

double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double ProductSpeed() {
  constexpr std::int64_t kSide = 1024;
  constexpr double kFlop = 2.0 * kSide * kSide * kSide;
  constexpr int kRepetitions = 8;
  const ThreadMode mode;
  internal::PrepareProducts();
  const std::vector<float> a(kSide * kSide, 0.5f);
  const std::vector<float> b(kSide * kSide, 0.25f);
  std::vector<float> c(kSide * kSide);
  double best = 0;
  for (int i = 0; i < kRepetitions; ++i) {
    const double start = ThreadSeconds();
    dnnl_sgemm(
        'N', 'N', kSide, kSide, kSide, 1, a.data(), kSide, b.data(), kSide, 0, c.data(), kSide);
    best = std::max(best, kFlop / (ThreadSeconds() - start));
  }
  return best;
}

}  // namespace adamant::kernels
