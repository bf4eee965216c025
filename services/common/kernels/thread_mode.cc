#include "services/common/kernels/thread_mode.h"

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

// From the OpenMP standard; the library that oneDNN itself uses defines them. Declared here because
// omp.h belongs to a compiler, not to that library.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
int omp_get_max_threads();
void omp_set_num_threads(int);
}
// NOLINTEND(readability-identifier-naming)

namespace adamant::kernels {
namespace {

#ifdef __x86_64__
constexpr unsigned kFlushDenormals = 0x8040;  // results (bit 15) and operands (bit 6)
unsigned FloatMode() { return _mm_getcsr(); }
void SetFloatMode(unsigned mode) { _mm_setcsr(mode); }
#else
constexpr unsigned kFlushDenormals = 0;
unsigned FloatMode() { return 0; }
void SetFloatMode(unsigned) {}
#endif

}  // namespace

ThreadMode::ThreadMode() : team_(omp_get_max_threads()), float_mode_(FloatMode()) {
  omp_set_num_threads(1);
  SetFloatMode(float_mode_ | kFlushDenormals);
}

ThreadMode::~ThreadMode() {
  SetFloatMode(float_mode_);
  omp_set_num_threads(team_);
}

}  // namespace adamant::kernels
