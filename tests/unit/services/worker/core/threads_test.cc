// Real training threads beside the exchange loop: nothing is lost, and nothing allocated on the
// way.

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <thread>

#include "tests/unit/services/worker/core/worker_rig.h"

namespace {

thread_local bool counts_allocations = false;
std::atomic<std::uint64_t> allocations{0};

void* Allocate(std::size_t size, std::size_t alignment) {
  if (counts_allocations) {
    allocations.fetch_add(1);
  }
  void* const memory =
      std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (memory == nullptr) {
    std::abort();
  }
  return memory;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new[](std::size_t size) { return Allocate(size, alignof(std::max_align_t)); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

namespace adamant::worker {
namespace {

void RunThreads(const RigOptions& options, std::uint32_t steps) {
  Rig rig(options);
  std::vector<std::jthread> threads;
  for (std::size_t i = 0; i < options.threads; ++i) {
    threads.emplace_back([&rig, i] {
      auto thread = TrainingThread::Create(rig.replica, i, rig.clock);
      ASSERT_TRUE(thread.ok());
      counts_allocations = true;
      (*thread)->Run();
      counts_allocations = false;
    });
  }
  bool stopping = false;
  while (!rig.exchange.Stopped()) {
    while (rig.next_batch < steps && rig.PutBatch()) {
    }
    rig.replica.bell.Ring();
    ASSERT_TRUE(rig.Pump().ok());
    while (rig.Serve(0) || rig.Serve(1) || rig.Reply()) {
      ASSERT_TRUE(rig.Pump().ok());
    }
    if (!stopping && rig.replica.steps.load() == steps) {
      stopping = true;
      rig.exchange.Stop();
    }
    std::this_thread::yield();
  }
  threads.clear();
  EXPECT_EQ(rig.acknowledged.size(), steps);
}

TEST(TrainingThreadsTest, EveryBatchIsTrainedAndAcknowledged) {
  RunThreads({.threads = 3, .fetch_every = 2, .push_every = 3}, 300);
  RunThreads({.threads = 2,
              .fetch_every = 1,
              .push_every = 2,
              .kind = OptimiserKind::kAdagrad,
              .location = OptimiserLocation::kServer,
              .rate = 0.02,
              .protocol = UpdateProtocol::kActivations},
             200);
}

TEST(TrainingThreadsTest, TheTrainingLoopAllocatesNothing) {
  allocations = 0;
  RunThreads({.threads = 2, .fetch_every = 3, .push_every = 2}, 400);
  EXPECT_EQ(allocations.load(), 0u);
}

}  // namespace
}  // namespace adamant::worker
