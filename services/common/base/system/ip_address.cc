#include "services/common/base/system/ip_address.h"

#include <netdb.h>
#include <sys/socket.h>

#include <memory>
#include <string_view>

namespace adamant {

std::string CanonicalAddress(const std::string& address) {
  const std::string without_link = address.substr(0, address.find('%'));
  addrinfo hints{};
  hints.ai_flags = AI_NUMERICHOST;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(without_link.c_str(), nullptr, &hints, &found) != 0) {
    return address;
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(found, freeaddrinfo);
  char text[NI_MAXHOST];
  if (getnameinfo(
          found->ai_addr, found->ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) {
    return address;
  }
  constexpr std::string_view kMapped = "::ffff:";
  const std::string_view canonical = text;
  const bool is_mapped =
      canonical.starts_with(kMapped) && canonical.find('.') != std::string_view::npos;
  return std::string(is_mapped ? canonical.substr(kMapped.size()) : canonical);
}

}  // namespace adamant
