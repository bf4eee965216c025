#include "services/common/kernels/isa.h"

#include <gmock/gmock.h>

#include <cstdlib>

namespace adamant::kernels {
namespace {

using testing::Contains;
using testing::HasSubstr;

TEST(IsaTest, PlainCodeRunsEverywhere) { EXPECT_THAT(SupportedIsas(), Contains("PLAIN")); }

TEST(IsaTest, AScopeChoosesOne) {
  const std::vector<std::string> all = SupportedIsas();
  for (const std::string& name : all) {
    const ScopedIsa scope(name);
    EXPECT_EQ(SupportedIsas().front(), name);
  }
  EXPECT_EQ(SupportedIsas(), all);
}

TEST(IsaTest, AnUnknownNameIsRefusedWithThoseThatAreKnown) {
  const absl::Status status = LimitIsa("MMX");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("AVX512, AVX2, SSE4, NEON, PLAIN"));
}

/// In a process of its own: the limit is for good.
TEST(IsaDeathTest, TheEnvironmentLimitsWhatIsUsed) {
  EXPECT_EXIT(
      {
        setenv("ADAMANT_MAX_CPU_ISA", "PLAIN", 1);
        const bool ok = LimitIsaFromEnvironment().ok();
        std::exit(ok && SupportedIsas() == std::vector<std::string>{"PLAIN"} ? 0 : 1);
      },
      testing::ExitedWithCode(0),
      "");
}

}  // namespace
}  // namespace adamant::kernels
