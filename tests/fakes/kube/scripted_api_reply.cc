#include <cstdio>
#include <utility>

#include "tests/fakes/kube/scripted_api_server.h"

namespace adamant::fakes {
namespace {

std::string Head(int status, const Reply::Headers& headers) {
  std::string head = "HTTP/1.1 " + std::to_string(status) + " Scripted\r\n";
  for (const auto& [name, value] : headers) {
    head.append(name).append(": ").append(value).append("\r\n");
  }
  return head;
}

}  // namespace

Reply Reply::With(Step step) && {
  // What ends a reply for good takes the place of the regular end.
  const bool ended = !steps_.empty() && steps_.back().kind == Step::Kind::kEndOfChunks;
  const bool last = step.kind == Step::Kind::kCut || step.kind == Step::Kind::kReset ||
                    step.kind == Step::Kind::kSilence;
  if (ended && last) {
    steps_.back() = std::move(step);
  } else if (ended && step.kind != Step::Kind::kClose) {
    steps_.insert(steps_.end() - 1, std::move(step));
  } else {
    steps_.push_back(std::move(step));
  }
  return std::move(*this);
}

Reply Reply::Json(int status, std::string body, Headers headers) {
  headers.try_emplace("Content-Type", "application/json");
  headers.try_emplace("Content-Length", std::to_string(body.size()));
  return Raw(Head(status, headers) + "\r\n" + std::move(body));
}

Reply Reply::Stream(int status, Headers headers) {
  headers.try_emplace("Content-Type", "application/json");
  headers.try_emplace("Transfer-Encoding", "chunked");
  Reply reply = Raw(Head(status, headers) + "\r\n");
  reply.steps_.push_back({.kind = Step::Kind::kEndOfChunks});
  reply.chunked_ = true;
  return reply;
}

Reply Reply::Raw(std::string bytes) { return Reply().Bytes(std::move(bytes)); }

Reply Reply::Nothing() { return Reply().With({.kind = Step::Kind::kSilence}); }

Reply Reply::Line(std::string text) && { return std::move(*this).Text(std::move(text) + "\n"); }

Reply Reply::Text(std::string text) && {
  if (!chunked_) {
    return std::move(*this).Bytes(std::move(text));
  }
  char size[32];
  std::snprintf(size, sizeof(size), "%zx\r\n", text.size());
  return std::move(*this).Bytes(size + std::move(text) + "\r\n");
}

Reply Reply::Bytes(std::string bytes) && {
  return std::move(*this).With({.kind = Step::Kind::kBytes, .text = std::move(bytes)});
}

Reply Reply::Wait(std::chrono::milliseconds time) && {
  return std::move(*this).With({.kind = Step::Kind::kWait, .time = time});
}

Reply Reply::WaitFor(std::string gate) && {
  return std::move(*this).With({.kind = Step::Kind::kWaitFor, .text = std::move(gate)});
}

Reply Reply::Cut() && { return std::move(*this).With({.kind = Step::Kind::kCut}); }

Reply Reply::Reset() && { return std::move(*this).With({.kind = Step::Kind::kReset}); }

Reply Reply::Silence() && { return std::move(*this).With({.kind = Step::Kind::kSilence}); }

Reply Reply::ThenClose() && { return std::move(*this).With({.kind = Step::Kind::kClose}); }

}  // namespace adamant::fakes
