#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace adamant::worker {

/// Wakes threads that wait for one of several things to change. Read before looking at them, then
/// Wait with what was read: a ring between the two is not missed.
/// Threads: any. Lock-free; a ring that nobody waits for makes no system call.
class Notifier {
 public:
  [[nodiscard]] std::uint32_t Read() const { return rings_.load(std::memory_order_acquire); }

  void Notify() {
    rings_.fetch_add(1, std::memory_order_acq_rel);
    rings_.notify_all();
  }

  /// Returns when the notifier has rung since Read returned `seen`.
  void Wait(std::uint32_t seen) const { rings_.wait(seen, std::memory_order_acquire); }

 private:
  std::atomic<std::uint32_t> rings_{0};
};

/// A bounded queue from one thread to one other. Allocates at construction only.
/// Threads: one that pushes and one that pops. Wait-free.
/// Source: Lamport 1983.
template <class T>
class SpscQueue {
 public:
  explicit SpscQueue(std::size_t capacity) : items_(std::bit_ceil(capacity)) {}

  /// False when the queue is full.
  bool Push(const T& item) {
    const std::size_t tail = tail_.load(std::memory_order_relaxed);
    if (Room() == 0) {
      return false;
    }
    items_[tail & (items_.size() - 1)] = item;
    tail_.store(tail + 1, std::memory_order_release);
    return true;
  }

  /// For the thread that pushes: how many more items there is room for.
  [[nodiscard]] std::size_t Room() const {
    return items_.size() -
           (tail_.load(std::memory_order_relaxed) - head_.load(std::memory_order_acquire));
  }

  /// For the thread that pops: the oldest item, null when the queue is empty.
  [[nodiscard]] const T* Front() const {
    const std::size_t head = head_.load(std::memory_order_relaxed);
    return head == tail_.load(std::memory_order_acquire) ? nullptr
                                                         : &items_[head & (items_.size() - 1)];
  }

  /// Removes the oldest item; the queue must not be empty.
  void Pop() { head_.store(head_.load(std::memory_order_relaxed) + 1, std::memory_order_release); }

 private:
  std::vector<T> items_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
};

/// A bounded queue between any threads. Allocates at construction only.
/// Threads: any. Lock-free.
/// Source: Vyukov, "Bounded MPMC queue", 1024cores.net.
template <class T>
class MpmcQueue {
 public:
  explicit MpmcQueue(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? std::size_t{2} : capacity) - 1),
        cells_(std::make_unique<Cell[]>(mask_ + 1)) {
    for (std::size_t i = 0; i <= mask_; ++i) {
      cells_[i].turn.store(i, std::memory_order_relaxed);
    }
  }

  /// False when the queue is full.
  bool Push(T item) {
    std::size_t tail = tail_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[tail & mask_];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == tail) {
        if (tail_.compare_exchange_weak(tail, tail + 1, std::memory_order_relaxed)) {
          cell.item = std::move(item);
          cell.turn.store(tail + 1, std::memory_order_release);
          return true;
        }
      } else if (turn < tail) {
        return false;
      } else {
        tail = tail_.load(std::memory_order_relaxed);
      }
    }
  }

  /// The oldest item; nullopt when the queue is empty.
  std::optional<T> Pop() {
    std::size_t head = head_.load(std::memory_order_relaxed);
    for (;;) {
      Cell& cell = cells_[head & mask_];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      if (turn == head + 1) {
        if (head_.compare_exchange_weak(head, head + 1, std::memory_order_relaxed)) {
          std::optional<T> item(std::move(cell.item));
          cell.turn.store(head + mask_ + 1, std::memory_order_release);
          return item;
        }
      } else if (turn < head + 1) {
        return std::nullopt;
      } else {
        head = head_.load(std::memory_order_relaxed);
      }
    }
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn{0};
    T item{};
  };

  const std::size_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<std::size_t> head_{0};
  alignas(64) std::atomic<std::size_t> tail_{0};
};

}  // namespace adamant::worker
