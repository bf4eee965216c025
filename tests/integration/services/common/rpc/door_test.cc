#include "services/common/rpc/door.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace adamant::rpc {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kNever{3'600'000};

// A client's end of a connection over loopback.
class Client {
 public:
  // To `port`; `six`: of IPv6.
  explicit Client(int port, bool six = false)
      : socket_(socket(six ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in6 peer6{};
    peer6.sin6_family = AF_INET6;
    peer6.sin6_port = htons(static_cast<std::uint16_t>(port));
    peer6.sin6_addr = in6addr_loopback;
    sockaddr_in peer4{};
    peer4.sin_family = AF_INET;
    peer4.sin_port = peer6.sin6_port;
    peer4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(six ? connect(socket_, reinterpret_cast<sockaddr*>(&peer6), sizeof(peer6))
                  : connect(socket_, reinterpret_cast<sockaddr*>(&peer4), sizeof(peer4)),
              0);
  }
  ~Client() { close(socket_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  // As gRPC calls it.
  [[nodiscard]] std::string name() const {
    sockaddr_in6 own{};
    socklen_t size = sizeof(own);
    getsockname(socket_, reinterpret_cast<sockaddr*>(&own), &size);
    const std::string port = ":" + std::to_string(ntohs(own.sin6_port));  // where IPv4 has it, too
    return (own.sin6_family == AF_INET ? "ipv4:127.0.0.1" : "ipv6:%5B::1%5D") + port;
  }

  // False: it was cut.
  [[nodiscard]] bool Send(std::size_t bytes) const {
    const std::string some(bytes, 'x');
    return send(socket_, some.data(), some.size(), MSG_NOSIGNAL) > 0;
  }

  [[nodiscard]] bool IsCutWithin(milliseconds time) const {
    pollfd file{.fd = socket_, .events = POLLIN, .revents = 0};
    return poll(&file, 1, static_cast<int>(time.count())) == 1;
  }
  [[nodiscard]] bool IsCut() const { return IsCutWithin(milliseconds(10'000)); }

 private:
  const int socket_;
};

class DoorTest : public testing::Test {
 protected:
  ~DoorTest() override {
    door_.reset();
    for (const int socket : sockets_) {
      close(socket);
    }
  }

  void Open(const Door::Limits& limits, const std::string& host = "127.0.0.1") {
    Open(
        limits, [](int) {}, host);
  }

  // `hold`: is called on the door's thread with each connection, before it counts.
  void Open(const Door::Limits& limits,
            const Door::Handler& hold,
            const std::string& host = "127.0.0.1") {
    door_ = std::make_unique<Door>(Listen(host + ":0").value(), limits);
    door_->Open([this, hold](int socket) {
      hold(socket);
      const MutexLock lock(mutex_);
      sockets_.push_back(socket);
    });
  }

  std::unique_ptr<Client> Connect(bool six = false) {
    const std::string& address = door_->address();
    return std::make_unique<Client>(std::stoi(address.substr(address.rfind(':') + 1)), six);
  }

  std::size_t Count() {
    const MutexLock lock(mutex_);
    return sockets_.size();
  }

  // Until the handler has been given so many connections.
  void Await(std::size_t connections) {
    while (Count() < connections) {
      std::this_thread::sleep_for(milliseconds(1));
    }
  }

  // What has come, as gRPC does.
  void ReadAll() {
    const MutexLock lock(mutex_);
    std::string bytes(20'000, '\0');
    for (const int socket : sockets_) {
      while (recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
      }
    }
  }

  std::unique_ptr<Door> door_;
  Mutex mutex_;
  std::vector<int> sockets_ ABSL_GUARDED_BY(mutex_);
};

TEST_F(DoorTest, TheOldestStrangerGivesWayToTheNext) {
  Open({.most_strangers = 2, .least_time = milliseconds(0), .most_time = kNever});
  const auto first = Connect();
  const auto second = Connect();
  Await(2);
  EXPECT_FALSE(first->IsCutWithin(milliseconds(50)));
  const auto third = Connect();
  EXPECT_TRUE(first->IsCut());
  Await(3);
  EXPECT_FALSE(second->IsCutWithin(milliseconds(50)));
}

// gRPC reads what has come before it lets the door's thread go, and a stranger may send without
// end.
TEST_F(DoorTest, WhoHoldsUpTheHandlerIsCutForSendingTooMuch) {
  Open({.most_bytes = 50'000, .most_time = kNever}, [](int socket) {
    std::string bytes(1'000, '\0');
    pollfd file{.fd = socket, .events = POLLIN, .revents = 0};
    do {
      poll(&file, 1, -1);
    } while (recv(socket, bytes.data(), bytes.size(), MSG_DONTWAIT) > 0);
  });
  const auto first = Connect();
  while (first->Send(1'000)) {
  }
  Connect();
  Await(2);
}

TEST_F(DoorTest, AStrangerHasItsLeastTimeBeforeTheNextIsLetIn) {
  Open({.most_strangers = 1, .least_time = milliseconds(300), .most_time = kNever});
  const auto first = Connect();
  Await(1);
  const auto begin = std::chrono::steady_clock::now();
  const auto second = Connect();
  EXPECT_TRUE(first->IsCut());
  EXPECT_GE(std::chrono::steady_clock::now() - begin, milliseconds(200));
  Await(2);
}

TEST_F(DoorTest, WhoIsAdmittedIsNoStranger) {
  Open({.most_strangers = 1, .least_time = milliseconds(0), .most_time = milliseconds(300)});
  std::vector<std::unique_ptr<Client>> members;
  for (std::size_t i = 1; i <= 3; ++i) {
    members.push_back(Connect());
    Await(i);
    door_->Admit(members.back()->name());
  }
  const auto stranger = Connect();
  EXPECT_TRUE(stranger->IsCut()) << "its time is over";
  for (const auto& member : members) {
    EXPECT_FALSE(member->IsCutWithin(milliseconds(0)));
    EXPECT_TRUE(member->Send(1));
  }
}

TEST_F(DoorTest, PeersAreKnownByWhatGrpcCallsThem) {
  const auto listener = Listen("[::1]:0");
  if (!listener.ok()) {
    GTEST_SKIP() << "no IPv6: " << listener.status();
  }
  close(listener->socket);
  Open({.most_strangers = 2, .most_time = milliseconds(300)}, "[::]");
  const auto four = Connect();
  const auto six = Connect(/*six=*/true);
  Await(2);
  door_->Admit(four->name());
  door_->Admit(six->name());
  const auto stranger = Connect(/*six=*/true);
  EXPECT_TRUE(stranger->IsCut());
  EXPECT_FALSE(four->IsCutWithin(milliseconds(0)));
  EXPECT_FALSE(six->IsCutWithin(milliseconds(0)));
}

TEST_F(DoorTest, WhoSendsMostIsCutWhenStrangersSendTooMuchTogether) {
  Open({.most_bytes_together = 100'000, .most_time = kNever});
  const auto modest = Connect();
  const auto loud = Connect();
  Await(2);
  ASSERT_TRUE(modest->Send(20'000));
  EXPECT_FALSE(modest->IsCutWithin(milliseconds(50)));
  std::size_t sent = 0;
  while (loud->Send(10'000)) {
    sent += 10'000;
    ReadAll();
  }
  EXPECT_GE(sent, 80'000u);
  EXPECT_FALSE(modest->IsCutWithin(milliseconds(50)));
}

TEST_F(DoorTest, WhoSendsTooMuchIsCut) {
  Open({.most_bytes = 50'000, .most_time = kNever});
  const auto loud = Connect();
  Await(1);
  std::size_t sent = 0;
  while (loud->Send(10'000)) {
    sent += 10'000;
    ReadAll();
  }
  EXPECT_GE(sent, 50'000u);
}

TEST_F(DoorTest, ConnectionsThatEndAreForgotten) {
  Open({.most_strangers = 1, .least_time = kNever, .most_time = kNever});
  for (std::size_t i = 1; i <= 3; ++i) {
    const auto client = Connect();
    Await(i);
    const MutexLock lock(mutex_);
    shutdown(sockets_.back(), SHUT_RDWR);  // as gRPC does
  }
}

TEST_F(DoorTest, TheLastFilesAreLeftToOthers) {
  constexpr int kFiles = 200;
  Open({.most_strangers = 1000, .most_time = kNever});
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = kFiles, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  std::vector<std::unique_ptr<Client>> clients;
  bool was_cut = false;
  for (int i = 0; i < 80 && !was_cut; ++i) {
    clients.push_back(Connect());
    was_cut = clients.front()->IsCutWithin(milliseconds(10));
  }
  int file = -1;  // the lowest that is free, once all are cut that have to be
  for (int i = 0; i < 1000 && (file < 0 || file >= kFiles - kFiles / 4); ++i) {
    close(file);
    std::this_thread::sleep_for(milliseconds(10));
    file = dup(0);
  }
  EXPECT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(was_cut) << "the oldest gives way";
  EXPECT_GE(file, 0);
  EXPECT_LT(file, kFiles - kFiles / 4);
  close(file);
}

TEST_F(DoorTest, NobodyIsLetInOnceItIsClosed) {
  Open({});
  door_->Close();
  door_->Close();
  EXPECT_EQ(Count(), 0u);
}

}  // namespace
}  // namespace adamant::rpc
