// Replaces malloc and its family for this process and counts who calls them while training.

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "services/common/kernels/hogwild.h"
#include "tests/unit/services/common/graph/training_fixture.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ADAMANT_OWN_MALLOC 0  // the sanitizer has taken its place
#else
#define ADAMANT_OWN_MALLOC 1
#endif

namespace adamant::graph {
namespace {

struct Range {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

Range library[2];  // where oneDNN and its OpenMP run-time library are loaded
std::atomic<bool> counting{false};
std::atomic<int> ours{0};
std::atomic<int> of_library{0};

[[maybe_unused]] void Count(void* caller) {
  if (!counting.load(std::memory_order_relaxed)) {
    return;
  }
  const auto at = reinterpret_cast<std::uintptr_t>(caller);
  const bool theirs = std::any_of(std::begin(library), std::end(library), [&](const Range& range) {
    return at >= range.begin && at < range.end;
  });
  ++(theirs ? of_library : ours);
}

int FindLibraries(dl_phdr_info* info, std::size_t, void*) {
  constexpr const char* kNames[] = {"libdnnl", "libgomp"};
  for (int k = 0; k < 2; ++k) {
    if (std::strstr(info->dlpi_name, kNames[k]) == nullptr) {
      continue;
    }
    library[k].begin = info->dlpi_addr;
    for (int i = 0; i < info->dlpi_phnum; ++i) {
      const ElfW(Phdr)& segment = info->dlpi_phdr[i];
      library[k].end = std::max<std::uintptr_t>(
          library[k].end, info->dlpi_addr + segment.p_vaddr + segment.p_memsz);
    }
  }
  return 0;
}

}  // namespace
}  // namespace adamant::graph

#if ADAMANT_OWN_MALLOC

#define ADAMANT_COUNT() adamant::graph::Count(__builtin_return_address(0))

// NOLINTBEGIN(bugprone-reserved-identifier, readability-identifier-naming): the C library's names
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);
// NOLINTEND(bugprone-reserved-identifier, readability-identifier-naming)

void* malloc(std::size_t bytes) {
  ADAMANT_COUNT();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  ADAMANT_COUNT();
  return __libc_calloc(count, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  ADAMANT_COUNT();
  return __libc_realloc(old, bytes);
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  ADAMANT_COUNT();
  return __libc_memalign(alignment, bytes);
}
int posix_memalign(void** result, std::size_t alignment, std::size_t bytes) {
  ADAMANT_COUNT();
  *result = __libc_memalign(alignment, bytes);
  return *result == nullptr ? ENOMEM : 0;
}
}

// These too, so that the caller of `new` is counted rather than the C++ library.
void* operator new(std::size_t bytes) {
  ADAMANT_COUNT();
  return __libc_malloc(bytes);
}
void* operator new[](std::size_t bytes) {
  ADAMANT_COUNT();
  return __libc_malloc(bytes);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  ADAMANT_COUNT();
  return __libc_memalign(static_cast<std::size_t>(alignment), bytes);
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  ADAMANT_COUNT();
  return __libc_memalign(static_cast<std::size_t>(alignment), bytes);
}
void operator delete(void* block) noexcept { std::free(block); }
void operator delete[](void* block) noexcept { std::free(block); }
void operator delete(void* block, std::size_t) noexcept { std::free(block); }
void operator delete[](void* block, std::size_t) noexcept { std::free(block); }
void operator delete(void* block, std::align_val_t) noexcept { std::free(block); }
void operator delete[](void* block, std::align_val_t) noexcept { std::free(block); }

#endif

namespace adamant::graph {
namespace {

TEST(AllocationTest, TrainingAllocatesNothingOfOurs) {
  if (!ADAMANT_OWN_MALLOC) {
    GTEST_SKIP() << "sanitizers bring their own malloc";
  }
  dl_iterate_phdr(FindLibraries, nullptr);
  ASSERT_NE(library[0].end, 0u) << "oneDNN is not loaded";
  const model::Graph graph = ReferenceGraph("adam-mnist");
  for (const BackendKind backend : {BackendKind::kReference, BackendKind::kOneDnn}) {
    auto context = MakeContext(graph, 32, backend);
    std::vector<float> weights = InitialWeights(graph, 1);
    std::vector<float> gradients(weights.size());
    Rng rng(1);
    FillRandom(*context, 32, graph.classes, rng);
    constexpr int kSteps = 3;
    ours = 0;
    of_library = 0;
    counting = true;
    for (int step = 0; step < kSteps; ++step) {
      context->Train(step == 1 ? 7 : 32, weights, gradients, 1);
      kernels::HogwildAxpy(weights, -0.01f, gradients);
      context->Evaluate(32, weights);
    }
    counting = false;
    EXPECT_EQ(ours, 0);
    std::printf("oneDNN allocated %d times within its calls in %d steps of %s\n",
                of_library.load(),
                kSteps,
                backend == BackendKind::kOneDnn ? "oneDNN" : "the reference");
  }
}

TEST(AllocationTest, AnAllocationIsCounted) {
  if (!ADAMANT_OWN_MALLOC) {
    GTEST_SKIP() << "sanitizers bring their own malloc";
  }
  ours = 0;
  counting = true;
  std::vector<float> several(100);
  several.resize(1000);
  counting = false;
  EXPECT_EQ(ours, 2);
}

}  // namespace
}  // namespace adamant::graph
