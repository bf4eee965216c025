#include "services/common/service/term_watch.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <utility>
#include <vector>

#include "proto/adamant/v1/control.grpc.pb.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/resolve.h"
#include "services/common/rpc/tls/channel_security.h"

namespace adamant::service {
namespace {

constexpr std::chrono::seconds kAnswerTimeout{1};
constexpr std::uint64_t kMaxAnswerBytes = 1024;

// 0 when nobody answers.
std::uint64_t AskTerm(const std::string& address,
                      const std::string& job,
                      const rpc::ChannelSecurity* security) {
  const auto stub =
      v1::Controller::NewStub(rpc::NewChannel(address, kMaxAnswerBytes, {}, security));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kAnswerTimeout);
  v1::GetTermRequest request;
  request.set_job(job);
  v1::Term answer;
  return stub->GetTerm(&context, request, &answer).ok() ? answer.term() : 0;
}

}  // namespace

TermWatch::TermWatch(std::string controller,
                     std::string job,
                     std::function<void(std::uint64_t)> on_term,
                     std::chrono::milliseconds interval,
                     std::shared_ptr<const rpc::ChannelSecurity> security)
    : controller_(std::move(controller)),
      job_(std::move(job)),
      on_term_(std::move(on_term)),
      interval_(interval),
      security_(std::move(security)),
      thread_([this] { Run(); }) {}

TermWatch::~TermWatch() {
  {
    const MutexLock lock(mutex_);
    stop_ = true;
    changed_.NotifyAll();
  }
  thread_.join();
}

void TermWatch::Run() {
  while (!StopsWithin(interval_)) {
    const std::vector<std::string> addresses = rpc::Resolve(controller_);
    if (addresses.size() < 2) {
      continue;
    }
    for (const std::string& address : addresses) {
      if (const std::uint64_t term = AskTerm(address, job_, security_.get()); term != 0) {
        on_term_(term);
      }
    }
  }
}

bool TermWatch::StopsWithin(std::chrono::milliseconds time) {
  const auto until = std::chrono::steady_clock::now() + time;
  const MutexLock lock(mutex_);
  while (!stop_ && std::chrono::steady_clock::now() < until) {
    changed_.WaitFor(mutex_, until - std::chrono::steady_clock::now());
  }
  return stop_;
}

}  // namespace adamant::service
