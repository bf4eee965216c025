#include <oneapi/dnnl/dnnl.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>

#include "services/common/base/check.h"
#include "services/common/kernels/isa.h"
#include "services/common/kernels/native/simd_isa.h"

namespace adamant::kernels {
namespace {

struct Isa {
  std::string_view name;
  SimdIsa simd;            // of native kernels
  dnnl_cpu_isa_t one_dnn;  // the best of its own that fits
};

// Best first.
constexpr Isa kIsas[] = {
    {"AVX512", SimdIsa::kAvx512, dnnl_cpu_isa_all},
    {"AVX2", SimdIsa::kAvx2, dnnl_cpu_isa_avx2},
    {"SSE4", SimdIsa::kSse4, dnnl_cpu_isa_sse41},
    {"NEON", SimdIsa::kNeon, dnnl_cpu_isa_all},
    {"PLAIN", SimdIsa::kPlain, dnnl_cpu_isa_sse41},
};

const Isa* Find(std::string_view name) {
  return std::find_if(
      std::begin(kIsas), std::end(kIsas), [&](const Isa& isa) { return isa.name == name; });
}

}  // namespace

std::vector<std::string> SupportedIsas() {
  std::vector<std::string> names;
  for (const Isa& isa : kIsas) {
    if (IsSupported(isa.simd)) {
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
  LimitSimd(limit->simd);
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
  SetSimd(isa->simd);
}

ScopedIsa::~ScopedIsa() { SetSimd(std::nullopt); }

}  // namespace adamant::kernels
