#include "services/common/service/stop_signals.h"

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <ctime>
#include <utility>

#include "services/common/base/log.h"

namespace adamant::service {
namespace {

constexpr int kQuit = SIGUSR1;  // sent by the destructor
constexpr time_t kLongestStopSeconds = 20;

sigset_t Signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, kQuit);
  return signals;
}

void WaitForSignals(const std::function<void()>& stop) {
  const sigset_t signals = Signals();
  int signal = 0;
  sigwait(&signals, &signal);
  if (signal == kQuit) {
    return;
  }
  LogInfo("stopping", {{"signal", signal}});
  stop();
  const timespec limit{.tv_sec = kLongestStopSeconds, .tv_nsec = 0};
  signal = sigtimedwait(&signals, nullptr, &limit);
  if (signal == kQuit) {
    return;
  }
  LogError(signal < 0 ? "the stop took too long: ending at once" : "second signal: ending at once");
  _exit(1);
}

}  // namespace

StopSignals::StopSignals(std::function<void()> stop) {
  const sigset_t signals = Signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  ::signal(SIGPIPE, SIG_IGN);  // a broken connection is an error of its write
  thread_ = std::thread([stop = std::move(stop)] { WaitForSignals(stop); });
}

StopSignals::~StopSignals() {
  pthread_kill(thread_.native_handle(), kQuit);
  thread_.join();
}

bool FollowParent(int pid) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  return getppid() == pid;  // it may have ended before the line above
}

}  // namespace adamant::service
