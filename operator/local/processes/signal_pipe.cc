#include "operator/local/processes/signal_pipe.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstring>

namespace adamant::local {
namespace {

sigset_t StopSignalSet() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGPIPE);
  return set;
}

int OpenDescriptor() {
  const sigset_t set = StopSignalSet();
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

}  // namespace

void BlockStopSignals() {
  const sigset_t set = StopSignalSet();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

SignalPipe::SignalPipe() : descriptor_(OpenDescriptor()) {}

SignalPipe::~SignalPipe() { close(descriptor_); }

int SignalPipe::Take() const {
  signalfd_siginfo info{};
  const bool got = read(descriptor_, &info, sizeof(info)) == sizeof(info);
  return got ? static_cast<int>(info.ssi_signo) : 0;
}

std::string SignalPipe::NameOf(int signal) {
  const std::string name = std::string("SIG") + sigabbrev_np(signal);
  return signal == SIGINT    ? name + " (Ctrl-C)"
         : signal == SIGPIPE ? name + " (nobody reads the output any more)"
                             : name;
}

}  // namespace adamant::local
