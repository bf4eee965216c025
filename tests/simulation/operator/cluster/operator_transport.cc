#include "tests/simulation/operator/cluster/operator_transport.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace adamant::orchestration {

using kube::HttpRequest;
using kube::HttpResponse;

namespace {

// "PUT configmaps"; of a subresource "PATCH trainingjobs/status".
std::string KindOf(const HttpRequest& request) {
  const std::string path = request.target.substr(0, request.target.find('?'));
  std::size_t at = path.find("/namespaces/");
  at = at == std::string::npos ? path.rfind('/') : path.find('/', at + 12);
  const std::string rest = path.substr(at + 1);
  const std::size_t name = rest.find('/');
  const std::size_t sub = name == std::string::npos ? name : rest.find('/', name + 1);
  return request.method + " " + rest.substr(0, name) +
         (sub == std::string::npos ? "" : rest.substr(sub));
}

}  // namespace

bool OperatorTransport::Happens(double chance) {
  return chance > 0 && world_.scheduler.Chance(chance);
}

void OperatorTransport::CrashAtWrite(std::size_t n, bool after, std::function<void()> died) {
  crash_in_ = n;
  crash_after_ = after;
  died_ = std::move(died);
}

void OperatorTransport::Die() {
  dead_ = true;
  crash_in_ = 0;
  if (died_) {
    died_();
  }
}

absl::StatusOr<HttpResponse> OperatorTransport::Send(const HttpRequest& request,
                                                     const kube::Cancellation& cancellation) {
  ++tries_;
  if (dead_ || Happens(troubles_.refused)) {
    return absl::UnavailableError("connection refused");
  }
  if (request.method != "GET") {
    return SendWrite(request, cancellation);
  }
  auto response = Pass(request, cancellation);
  if (Happens(troubles_.answer_lost)) {
    return absl::UnavailableError("connection reset by peer");
  }
  return response;
}

absl::StatusOr<HttpResponse> OperatorTransport::SendWrite(const HttpRequest& request,
                                                          const kube::Cancellation& cancellation) {
  writes_.push_back(KindOf(request));
  const bool crash = crash_in_ > 0 && --crash_in_ == 0;
  if (crash && !crash_after_) {
    Die();
    return absl::UnavailableError("the process is dead");
  }
  const bool late = Happens(troubles_.late);
  if (request.meanwhile && (late || Happens(troubles_.slow))) {
    request.meanwhile();
  }
  if (late) {
    unanswered_.insert(request.body);
    const auto delay = world_.scheduler.Random(milliseconds(100), seconds(8));
    world_.scheduler.After(delay, nullptr, [this, request, cancellation] {
      world_.delayed = true;
      Pass(request, cancellation).IgnoreError();
      world_.delayed = false;
    });
    return absl::DeadlineExceededError("no answer in time");
  }
  world_.repeated = unanswered_.contains(request.body);
  auto response = Pass(request, cancellation);
  world_.repeated = false;
  if (crash) {
    Die();
  }
  if (dead_ || Happens(troubles_.answer_lost)) {
    unanswered_.insert(request.body);
    return absl::UnavailableError("connection reset by peer");
  }
  return response;
}

absl::StatusOr<HttpResponse> OperatorTransport::Pass(const HttpRequest& request,
                                                     const kube::Cancellation& cancellation) {
  return world_.mutation == Mutation::kNone ? world_.api.Send(request, cancellation)
                                            : sabotage_.Send(request, cancellation);
}

absl::StatusOr<HttpResponse> OperatorTransport::Stream(
    const HttpRequest& request,
    std::chrono::milliseconds idle,
    const std::function<bool(std::string_view line)>& on_line,
    const kube::Cancellation& cancellation) {
  ++tries_;
  if (dead_ || Happens(troubles_.refused)) {
    return absl::UnavailableError("connection refused");
  }
  std::uint64_t left = Happens(troubles_.cut) ? world_.scheduler.rng().Below(4) : UINT64_MAX;
  const auto pass = [&](std::string_view line) {
    if (left == 0) {
      return false;
    }
    --left;
    if (world_.mutation == Mutation::kNone) {
      return on_line(line);
    }
    return sabotage_.Hides(line) || on_line(sabotage_.Changed(line));
  };
  auto response = world_.api.Stream(request, idle, pass, cancellation);
  if (left == 0) {
    return absl::UnavailableError("connection reset by peer");
  }
  return response;
}

}  // namespace adamant::orchestration
