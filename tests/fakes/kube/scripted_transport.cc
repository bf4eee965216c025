#include "tests/fakes/kube/scripted_transport.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <utility>

namespace adamant::kube {

ScriptedReply Answer(int status, std::string body, Headers headers) {
  return {.response = {status, std::move(headers), std::move(body)}};
}

ScriptedReply Refusal(int status, const std::string& reason, const std::string& message) {
  const nlohmann::json body = {
      {"kind", "Status"}, {"code", status}, {"reason", reason}, {"message", message}};
  return Answer(status, body.dump());
}

ScriptedReply Lines(std::vector<std::string> lines, absl::Status error) {
  return {.lines = std::move(lines), .error = std::move(error)};
}

ScriptedReply Broken(absl::Status error) { return {.error = std::move(error)}; }

void ScriptedTransport::Expect(std::string method, std::string target, ScriptedReply reply) {
  const MutexLock lock(mutex_);
  script_.push_back({std::move(method), std::move(target), std::move(reply)});
}

absl::StatusOr<HttpResponse> ScriptedTransport::Send(const HttpRequest& request,
                                                     const Cancellation& cancellation) {
  ScriptedReply reply = Take(request, cancellation);
  if (!reply.error.ok()) {
    return reply.error;
  }
  return std::move(reply.response);
}

absl::StatusOr<HttpResponse> ScriptedTransport::Stream(
    const HttpRequest& request,
    std::chrono::milliseconds /*idle*/,
    const std::function<bool(std::string_view line)>& on_line,
    const Cancellation& cancellation) {
  ScriptedReply reply = Take(request, cancellation);
  for (const std::string& line : reply.lines) {
    if (!on_line(line)) {
      return HttpResponse{.status = 200};
    }
  }
  if (!reply.error.ok()) {
    return reply.error;
  }
  return std::move(reply.response);
}

std::vector<HttpRequest> ScriptedTransport::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

std::size_t ScriptedTransport::left() const {
  const MutexLock lock(mutex_);
  return script_.size();
}

ScriptedReply ScriptedTransport::Take(const HttpRequest& request,
                                      const Cancellation& cancellation) {
  ScriptedReply reply;
  {
    const MutexLock lock(mutex_);
    if (cancellation.cancelled()) {
      return Broken(absl::CancelledError("cancelled"));
    }
    requests_.push_back(request);
    if (script_.empty()) {
      ADD_FAILURE() << "unexpected: " << request.method << " " << request.target;
      return Broken();
    }
    Step step = std::move(script_.front());
    script_.pop_front();
    EXPECT_EQ(request.method, step.method) << request.target;
    EXPECT_EQ(request.target.substr(0, step.target.size()), step.target);
    reply = std::move(step.reply);
  }
  if (reply.on_arrival) {
    reply.on_arrival();
  }
  return reply;
}

}  // namespace adamant::kube
