#include "services/common/base/system/listen.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace adamant {
namespace {

bool HasIpv6() {
  const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (socket >= 0) {
    close(socket);
  }
  return socket >= 0;
}

// As on a machine without IPv6, for the rest of this process.
bool TakeIpv6Away() {
  std::array<sock_filter, 6> filter = {
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 3),
       BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_INET6, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAFNOSUPPORT),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)}};
  const sock_fprog program{.len = filter.size(), .filter = filter.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

bool CanConnectByIpv4(const Listener& listener) {
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(static_cast<std::uint16_t>(
      std::stoi(listener.address.substr(listener.address.rfind(':') + 1))));
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const bool connected = connect(socket, reinterpret_cast<sockaddr*>(&peer), sizeof(peer)) == 0;
  close(socket);
  return connected;
}

TEST(ListenTest, TheAnyAddressOfIpv6TakesIpv4Too) {
  if (!HasIpv6()) {
    GTEST_SKIP() << "this machine has no IPv6";
  }
  const auto listener = Listen("[::]:0");
  ASSERT_TRUE(listener.ok()) << listener.status();
  EXPECT_TRUE(listener->address.starts_with("[::]:")) << listener->address;
  EXPECT_TRUE(CanConnectByIpv4(*listener));
  close(listener->socket);
}

TEST(ListenTest, WhereThereIsNoIpv6TheAnyAddressIsThatOfIpv4) {
  const pid_t child = fork();
  if (child == 0) {
    if (!TakeIpv6Away() || HasIpv6()) {
      _exit(2);
    }
    const auto listener = Listen("[::]:0");
    const bool other = Listen("[::1]:0").ok();  // which asks for IPv6 by name
    const bool falls_back =
        listener.ok() && listener->address.starts_with("0.0.0.0:") && CanConnectByIpv4(*listener);
    _exit(falls_back && !other ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "2: IPv6 could not be taken away";
}

}  // namespace
}  // namespace adamant
