#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "services/common/base/check.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/simd/simd_targets.h"

// After what they build for.
#include <hwy/highway.h>

namespace adamant::kernels {
namespace {

struct Isa {
  std::string_view name;
  std::int64_t targets;    // Highway's, as bits
  dnnl_cpu_isa_t one_dnn;  // the best of its own that fits
};

/// Best first. Which of the plain ones is built depends on the compiler.
constexpr Isa kIsas[] = {
    {"AVX512", HWY_AVX3, dnnl_cpu_isa_all},
    {"AVX2", HWY_AVX2, dnnl_cpu_isa_avx2},
    {"SSE4", HWY_SSE4, dnnl_cpu_isa_sse41},
    {"NEON", HWY_NEON, dnnl_cpu_isa_all},
    {"PLAIN", HWY_SCALAR | HWY_EMU128, dnnl_cpu_isa_sse41},
};

const Isa* Find(std::string_view name) {
  return std::find_if(
      std::begin(kIsas), std::end(kIsas), [&](const Isa& isa) { return isa.name == name; });
}

}  // namespace

std::vector<std::string> SupportedIsas() {
  // The plain ones need nothing, so that they are always there.
  const std::int64_t supported =
      (hwy::SupportedTargets() | HWY_SCALAR | HWY_EMU128) & std::int64_t{HWY_TARGETS};
  std::vector<std::string> names;
  for (const Isa& isa : kIsas) {
    if ((isa.targets & supported) != 0) {
      names.emplace_back(isa.name);
    }
  }
  return names;
}

absl::Status LimitIsa(std::string_view name) {
  const Isa* const limit = Find(name);
  if (limit == std::end(kIsas)) {
    std::string known;
    for (const Isa& isa : kIsas) {
      known += (known.empty() ? "" : ", ") + std::string(isa.name);
    }
    return absl::InvalidArgumentError("\"" + std::string(name) +
                                      "\" is no instruction set; there are " + known);
  }
  std::int64_t better = 0;
  for (const Isa* isa = std::begin(kIsas); isa != limit; ++isa) {
    better |= isa->targets;
  }
  hwy::DisableTargets(better);
  // Refused once oneDNN has chosen, which the header says.
  dnnl_set_max_cpu_isa(limit->one_dnn);
  return absl::OkStatus();
}

absl::Status LimitIsaFromEnvironment() {
  const char* const name = std::getenv("ADAMANT_MAX_CPU_ISA");
  if (name == nullptr) {
    return absl::OkStatus();
  }
  const absl::Status status = LimitIsa(name);
  return status.ok()
             ? status
             : absl::InvalidArgumentError("ADAMANT_MAX_CPU_ISA: " + std::string(status.message()));
}

ScopedIsa::ScopedIsa(std::string_view name) {
  const Isa* const isa = Find(name);
  ADAMANT_CHECK(isa != std::end(kIsas), "a name of SupportedIsas()");
  hwy::SetSupportedTargetsForTest(isa->targets);
}

ScopedIsa::~ScopedIsa() { hwy::SetSupportedTargetsForTest(0); }

}  // namespace adamant::kernels
