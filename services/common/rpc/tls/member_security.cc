#include "services/common/rpc/tls/member_security.h"

#include "services/common/base/check.h"
#include "services/common/security/expected_peer.h"

namespace adamant::rpc {

std::shared_ptr<const ChannelSecurity> MemberSecurity::To(security::Role role,
                                                          std::optional<std::uint32_t> slot) const {
  if (identity_ == nullptr) {
    return nullptr;
  }
  const auto own = identity_->Get();
  ADAMANT_CHECK(own != nullptr, "a process without a certificate");
  return std::make_shared<const ChannelSecurity>(ChannelSecurity{
      .identity = identity_, .peer = security::ExpectMember(own->content.identity, role, slot)});
}

std::uint64_t MemberSecurity::version() const {
  return identity_ == nullptr ? 0 : identity_->Get()->version;
}

}  // namespace adamant::rpc
