#include "tests/processes/proxy_pipe.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

namespace adamant::processes {
namespace {

// How many bytes the socket took; nothing when it is broken.
std::optional<std::size_t> Send(int socket, std::span<const std::byte> bytes) {
  const ssize_t sent = send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent >= 0) {
    return static_cast<std::size_t>(sent);
  }
  return errno == EAGAIN || errno == EINTR ? std::optional<std::size_t>(0) : std::nullopt;
}

}  // namespace

Pipe::TimePoint Pipe::DueTime(TimePoint now,
                              std::size_t bytes,
                              const Behaviour::Direction& direction,
                              std::chrono::milliseconds extra,
                              Rng& rng) {
  TimePoint due = now;
  if (direction.bytes_per_second != 0) {
    const double seconds =
        static_cast<double>(bytes) / static_cast<double>(direction.bytes_per_second);
    line_free_ = std::max(line_free_, now) + std::chrono::duration_cast<TimePoint::duration>(
                                                 std::chrono::duration<double>(seconds));
    due = line_free_;
  }
  due += direction.delay + extra;
  if (direction.jitter.count() != 0) {
    due += std::chrono::duration_cast<TimePoint::duration>(direction.jitter * rng.Uniform());
  }
  last_due_ = std::max(last_due_, due);
  return last_due_;
}

void Pipe::Push(std::span<const std::byte> bytes, TimePoint due) {
  Chunk chunk{.bytes = std::make_unique_for_overwrite<std::byte[]>(bytes.size()),
              .size = bytes.size(),
              .written = 0,
              .due = due};
  std::copy(bytes.begin(), bytes.end(), chunk.bytes.get());
  chunks_.push_back(std::move(chunk));
  waiting_bytes_ += bytes.size();
}

void Pipe::PushEnd(TimePoint due) { end_ = due; }

bool Pipe::Write(int socket, TimePoint now) {
  blocked_ = false;
  while (!chunks_.empty() && chunks_.front().due <= now) {
    Chunk& chunk = chunks_.front();
    const auto sent = Send(socket, {chunk.bytes.get() + chunk.written, chunk.size - chunk.written});
    if (!sent.has_value()) {
      return false;
    }
    chunk.written += *sent;
    waiting_bytes_ -= *sent;
    if (chunk.written < chunk.size) {
      blocked_ = true;
      return true;
    }
    chunks_.pop_front();
  }
  if (chunks_.empty() && end_.has_value() && *end_ <= now && !finished_) {
    shutdown(socket, SHUT_WR);
    finished_ = true;
  }
  return true;
}

bool Pipe::WriteOrPush(int socket, std::span<const std::byte> bytes, TimePoint now) {
  if (!chunks_.empty()) {
    Push(bytes, now);
    return true;
  }
  const auto sent = Send(socket, bytes);
  if (!sent.has_value()) {
    return false;
  }
  if (*sent < bytes.size()) {
    Push(bytes.subspan(*sent), now);
    blocked_ = true;
  }
  return true;
}

std::optional<Pipe::TimePoint> Pipe::NextDue() const {
  if (!chunks_.empty()) {
    return chunks_.front().due;
  }
  return finished_ ? std::nullopt : end_;
}

}  // namespace adamant::processes
