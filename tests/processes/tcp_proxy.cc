// tcp_proxy: forwards the TCP connections that a rule of iptables redirects to it (REDIRECT) to
// where they were meant to go, and misbehaves as it is told. Commands are lines on standard input,
// answered by a line that begins with "ok" or "error":
//
//   set ADDRESS|* KEY=VALUE …   how connections to this address, or to all others, behave from now
//   on
//                               (proxy_behaviour.h); hold=1 stalls them
//   reset ADDRESS|*             resets those that are open
//   stats                       "ok connections=N open=N bytes=N resets=N duplicated=N"
//
// Ends when standard input does.

#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "tests/processes/proxy_connection.h"

namespace adamant::processes {
namespace {

// SO_ORIGINAL_DST of <linux/netfilter_ipv4.h>, which clashes with <netinet/in.h>.
constexpr int kOriginalDestination = 80;

class Proxy {
 public:
  explicit Proxy(int listener) : listener_(listener) {}

  // Until standard input ends.
  void Run();

 private:
  void Wait();
  void Accept();
  bool ReadCommands();
  std::string Execute(std::string_view command);
  std::string Set(std::string_view address, std::string_view text);
  void Reset(std::string_view address);
  void Remove(std::size_t index, bool reset);

  int listener_;
  Behaviours behaviours_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<pollfd> descriptors_;
  std::string input_;

  std::uint64_t accepted_ = 0;
  std::uint64_t closed_bytes_ = 0;
  std::uint64_t resets_ = 0;
  std::uint64_t duplicated_ = 0;
};

void Proxy::Run() {
  while (true) {
    Wait();
    if ((descriptors_[0].revents & (POLLIN | POLLHUP)) != 0 && !ReadCommands()) {
      return;
    }
    if ((descriptors_[1].revents & POLLIN) != 0) {
      Accept();
    }
    const auto now = std::chrono::steady_clock::now();
    for (std::size_t i = connections_.size(); i-- > 0;) {
      Connection& connection = *connections_[i];
      const auto state = connection.Work(behaviours_.Of(connection.address()), descriptors_, now);
      if (state != Connection::State::kOpen) {
        Remove(i, state == Connection::State::kReset);
      }
    }
  }
}

void Proxy::Wait() {
  descriptors_ = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                  {.fd = listener_, .events = POLLIN, .revents = 0}};
  auto until = Connection::TimePoint::max();
  for (const auto& connection : connections_) {
    const Behaviour& behaviour = behaviours_.Of(connection->address());
    connection->AddDescriptors(behaviour, descriptors_);
    until = std::min(until, connection->NextTimer(behaviour).value_or(until));
  }
  timespec timeout{};
  if (until != Connection::TimePoint::max()) {
    const auto wait = std::max(until - std::chrono::steady_clock::now(), {});
    const auto seconds = std::chrono::floor<std::chrono::seconds>(wait);
    timeout = {.tv_sec = seconds.count(),
               .tv_nsec = std::chrono::nanoseconds(wait - seconds).count()};
  }
  const bool forever = until == Connection::TimePoint::max();
  ppoll(descriptors_.data(), descriptors_.size(), forever ? nullptr : &timeout, nullptr);
}

void Proxy::Accept() {
  const int client = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (client < 0) {
    return;
  }
  const int on = 1;
  setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  sockaddr_in server{};
  socklen_t size = sizeof(server);
  if (getsockopt(client, SOL_IP, kOriginalDestination, &server, &size) != 0) {
    close(client);
    return;
  }
  ++accepted_;
  auto connection = Connection::Open(client, server, behaviours_, accepted_);
  if (connection.ok()) {
    duplicated_ += (*connection)->duplicated() ? 1 : 0;
    connections_.push_back(*std::move(connection));
  }
}

// Returns false at the end of the input.
bool Proxy::ReadCommands() {
  char buffer[4096];
  const ssize_t got = read(STDIN_FILENO, buffer, sizeof(buffer));
  if (got <= 0) {
    return false;
  }
  input_.append(buffer, static_cast<std::size_t>(got));
  for (std::size_t end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
    const std::string answer = Execute(std::string_view(input_).substr(0, end));
    std::printf("%s\n", answer.c_str());
    std::fflush(stdout);
    input_.erase(0, end + 1);
  }
  return true;
}

std::string Proxy::Execute(std::string_view command) {
  const std::string_view verb = command.substr(0, command.find(' '));
  std::string_view rest = command.substr(std::min(verb.size() + 1, command.size()));
  const std::string_view address = rest.substr(0, rest.find(' '));
  rest.remove_prefix(std::min(address.size() + 1, rest.size()));
  if (verb == "set" && !address.empty()) {
    return Set(address, rest);
  }
  if (verb == "reset" && !address.empty()) {
    Reset(address);
    return "ok";
  }
  if (verb == "stats") {
    std::uint64_t bytes = closed_bytes_;
    for (const auto& connection : connections_) {
      bytes += connection->forwarded_bytes();
    }
    return "ok connections=" + std::to_string(accepted_) +
           " open=" + std::to_string(connections_.size()) + " bytes=" + std::to_string(bytes) +
           " resets=" + std::to_string(resets_) + " duplicated=" + std::to_string(duplicated_);
  }
  return "error: not a command: " + std::string(command);
}

std::string Proxy::Set(std::string_view address, std::string_view text) {
  absl::StatusOr<Behaviour> behaviour = ParseBehaviour(text);
  if (!behaviour.ok()) {
    return "error: " + std::string(behaviour.status().message());
  }
  if (address == "*") {
    behaviours_.otherwise = *behaviour;
  } else {
    behaviours_.by_address[std::string(address)] = *behaviour;
  }
  return "ok";
}

void Proxy::Reset(std::string_view address) {
  for (std::size_t i = connections_.size(); i-- > 0;) {
    if (address == "*" || connections_[i]->address() == address) {
      Remove(i, true);
    }
  }
}

void Proxy::Remove(std::size_t index, bool reset) {
  if (reset) {
    connections_[index]->Reset();
    ++resets_;
  }
  closed_bytes_ += connections_[index]->forwarded_bytes();
  connections_.erase(connections_.begin() + static_cast<std::ptrdiff_t>(index));
}

// Listens on `port` of all addresses; -1 if that fails.
int Listen(std::uint16_t port) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  const auto* any = reinterpret_cast<const sockaddr*>(&address);
  const bool bound = bind(listener, any, sizeof(address)) == 0;
  return bound && listen(listener, SOMAXCONN) == 0 ? listener : -1;
}

}  // namespace
}  // namespace adamant::processes

int main(int argc, char** argv) {
  const int port = argc == 2 ? std::atoi(argv[1]) : 0;
  const int listener =
      port > 0 && port < 65536 ? adamant::processes::Listen(static_cast<std::uint16_t>(port)) : -1;
  if (listener < 0) {
    std::fprintf(stderr, "usage: tcp_proxy PORT (free)\n");
    return 2;
  }
  std::puts("ok");
  std::fflush(stdout);
  adamant::processes::Proxy(listener).Run();
  return 0;
}
