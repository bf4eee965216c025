#include "tests/fakes/port_attack.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <thread>
#include <utility>

#include "tests/fakes/flood.h"

namespace adamant::fakes {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr milliseconds kProbePause(100);
constexpr milliseconds kLongestProbe(30'000);  // after which it is given up
constexpr std::uint64_t kFloodBytes = 60'000'000;
constexpr std::size_t kUnitBytes = 16384;
constexpr timeval kTimeout{.tv_sec = 10, .tv_usec = 0};

// A connection of somebody without manners. Closes itself.
class RawConnection {
 public:
  explicit RawConnection(const std::string& address)
      : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const std::size_t colon = address.rfind(':');
    sockaddr_in peer{};
    peer.sin_family = AF_INET;
    peer.sin_port = htons(static_cast<std::uint16_t>(std::stoi(address.substr(colon + 1))));
    inet_pton(AF_INET, address.substr(0, colon).c_str(), &peer.sin_addr);
    setsockopt(socket_, SOL_SOCKET, SO_SNDTIMEO, &kTimeout, sizeof(kTimeout));  // connect, too
    // Sending tells whether it is connected.
    (void)connect(socket_, reinterpret_cast<const sockaddr*>(&peer), sizeof(peer));
  }
  ~RawConnection() { close(socket_); }
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // False: the server has hung up.
  [[nodiscard]] bool Send(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) {
        return false;
      }
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }

 private:
  const int socket_;
};

// HTTP/2: the head of a frame of stream 1.
std::string FrameHead(std::size_t bytes, char type) {
  std::string head;
  for (int shift = 16; shift >= 0; shift -= 8) {
    head.push_back(static_cast<char>(bytes >> shift & 0xff));
  }
  return head + type + std::string("\0\0\0\0\1", 5);
}

std::string Preface() {
  return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + std::string("\0\0\0\4\0\0\0\0\0", 9);
}

// Sends `begin`, then `unit` again and again, on as many connections at once as first messages.
void RunRaw(const std::string& address, const std::string& begin, const std::string& unit) {
  std::vector<std::jthread> senders;
  for (std::size_t i = 0; i < Flood().streams; ++i) {
    senders.emplace_back([&] {
      const RawConnection connection(address);
      bool open = connection.Send(begin);
      for (std::uint64_t sent = 0; open && sent < kFloodBytes; sent += unit.size()) {
        open = connection.Send(unit);
      }
    });
  }
}

// Headers, one of which never ends.
void RunHeaders(const Port& port) {
  const std::string filler(kUnitBytes, 'a');
  if (port.methods.empty()) {
    RunRaw(port.address, "GET /metrics HTTP/1.1\r\nx: ", filler);
  } else {
    const std::string header("\x00\x01x\x7f\xff\xff\xff\x7f", 8);  // x: 268 million bytes
    RunRaw(port.address,
           Preface() + FrameHead(header.size(), 1) + header,
           FrameHead(filler.size(), 9) + filler);
  }
}

void RunMessages(const Port& port) {
  if (port.methods.empty()) {
    RunRaw(port.address,
           "POST /metrics HTTP/1.1\r\nContent-Length: 60000000\r\n\r\n",
           std::string(kUnitBytes, 'a'));
  }
  for (const std::string& method : port.methods) {
    for (const char* const job : {"", "8"}) {
      const auto named = *job == 0 ? std::nullopt : std::optional<std::string>(job);
      Run({.address = port.address, .method = method, .job = named, .bytes = kFloodBytes});
    }
  }
}

void RunSilent(const Port& port, int count) {
  std::vector<std::unique_ptr<RawConnection>> connections;
  for (int i = 0; i < count; ++i) {
    connections.push_back(std::make_unique<RawConnection>(port.address));
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
}

int FromEnvironment(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// A third each says nothing, begins HTTP/2, and says what is no protocol; all stay for as long as
// the attacker has room for them.
void RunHostile(const Port& port, int count) {
  constexpr std::size_t kHeld = 200;
  const milliseconds time(1000 * FromEnvironment("ADAMANT_HOSTILE_SECONDS", 6));
  std::deque<std::unique_ptr<RawConnection>> held;
  const auto begin = Clock::now();
  for (int i = 0; i < count; ++i) {
    held.push_back(std::make_unique<RawConnection>(port.address));
    (void)held.back()->Send(i % 3 == 0 ? "" : i % 3 == 1 ? Preface() : "let me in\r\n\r\n");
    if (held.size() > kHeld) {
      held.pop_front();
    }
    std::this_thread::sleep_until(begin + time * i / count);
  }
}

// The longest that a probe took while `attack` was made on all ports.
milliseconds ProbeDuring(const std::vector<Port>& ports,
                         const std::function<void(const Port&)>& attack,
                         const std::function<bool()>& probe) {
  std::atomic<std::size_t> attacked = ports.size();
  std::vector<std::jthread> attackers;
  for (const Port& port : ports) {
    attackers.emplace_back([&] {
      attack(port);
      --attacked;
    });
  }
  milliseconds slowest{0};
  while (attacked > 0) {
    const auto begin = Clock::now();
    while (!probe() && Clock::now() - begin < kLongestProbe) {
      std::this_thread::sleep_for(milliseconds(10));
    }
    const auto end = Clock::now();
    slowest = std::max(slowest, std::chrono::duration_cast<milliseconds>(end - begin));
    std::this_thread::sleep_until(begin + kProbePause);
  }
  return slowest;
}

// For the connections of the attacker.
void RaiseFileLimit() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

}  // namespace

Damage Attack(pid_t process,
              const std::vector<Port>& ports,
              const std::function<bool()>& probe,
              std::ostream& out) {
  RaiseFileLimit();
  const int hostile = FromEnvironment("ADAMANT_HOSTILE", 900);
  const std::vector<std::pair<std::string, std::function<void(const Port&)>>> attacks = {
      {"first messages", RunMessages},
      {"endless headers", RunHeaders},
      {"50 silent connections", [](const Port& port) { RunSilent(port, 50); }},
      {"600 silent connections", [](const Port& port) { RunSilent(port, 600); }},
      {std::to_string(hostile) + " hostile connections",
       [&](const Port& port) { RunHostile(port, hostile); }}};
  const std::uint64_t before = PeakBytes(process);
  Damage damage;
  for (const auto& [name, attack] : attacks) {
    const auto begin = Clock::now();
    const milliseconds slowest = ProbeDuring(ports, attack, probe);
    const std::chrono::duration<double> seconds = Clock::now() - begin;
    damage.slowest = std::max(damage.slowest, slowest);
    damage.bytes = PeakBytes(process) - before;
    out << name << " in " << seconds.count() << " s: " << (damage.bytes >> 20)
        << " MB more than at first, slowest probe " << slowest.count() << " ms" << std::endl;
  }
  return damage;
}

}  // namespace adamant::fakes
