#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <vector>

namespace adamant::data_server {

/// Batches that are still to be dispatched: first those that came back, in the order in which they
/// came, then the new ones by index. A batch that is done is never dispatched.
/// Threads: one thread at a time.
class BatchQueue {
 public:
  struct Entry {
    std::uint32_t batch = 0;
    bool lost = false;  ///< it came back because a worker was lost
  };

  BatchQueue() = default;

  /// `done` by batch.
  explicit BatchQueue(std::vector<bool> done);

  /// Takes the next batch out.
  std::optional<Entry> Next();

  /// Puts a batch back that was taken out and is not done.
  void Return(Entry entry);

  /// Marks a batch as done; false if it was before.
  bool MarkDone(std::uint32_t batch);

  /// Returns whether Next would find a batch that came back.
  [[nodiscard]] bool HasReturned();

  /// Returns whether Next would find a batch.
  [[nodiscard]] bool HasNext();

  /// Appends up to `count` of the batches that Next would find, in order.
  void Peek(std::size_t count, std::vector<std::uint32_t>& out) const;

  [[nodiscard]] const std::vector<bool>& done() const { return done_; }

  /// Returns how many batches are out: taken, and neither back nor done.
  [[nodiscard]] std::size_t out() const { return out_; }

 private:
  void SkipDone();
  void Settle(std::uint32_t batch);

  std::vector<bool> done_;
  std::deque<Entry> returned_;
  std::uint32_t next_ = 0;  // the first batch that was never dispatched
  std::vector<bool> is_out_;
  std::size_t out_ = 0;  // of is_out_
};

}  // namespace adamant::data_server
