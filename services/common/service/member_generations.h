#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "services/common/base/ids.h"
#include "services/common/base/mutex.h"
#include "services/common/security/peer_identity.h"

namespace adamant::protocol {
struct Membership;
}  // namespace adamant::protocol

namespace adamant::service {

/// Generation of its slot that each of a job's members was started as, as the controller has said
/// last. Certificates name generations, hellos name incarnations: this tells whether a hello is
/// that of its certificate. Threads: any.
class MemberGenerations {
 public:
  /// A process that is a member.
  struct Member {
    security::Role role = security::Role::kWorker;
    std::uint32_t slot = 0;
    Incarnation incarnation = 0;
    std::uint64_t generation = 0;  ///< 0: not known, as the controller is from before certificates
  };

  /// The controller says that this is a member. Of a slot the highest incarnation is kept, whatever
  /// becomes of its process: a list without it may be that of a controller that has not heard it
  /// yet.
  void Set(const Member& member);

  /// Likewise, of all that the controller lists.
  void SetAll(const protocol::Membership& membership);

  /// Checks that a caller is the process that its hello names. `caller`: null: nobody knows who it
  /// is, as there is no TLS, and may be any. Lower incarnations than the slot's newest pass: their
  /// order says what they may do.
  /// Errors: PermissionDenied for another slot, for another generation than that which has joined
  /// as this incarnation, and for one that was replaced; Unavailable where the controller has not
  /// said yet who is this incarnation.
  [[nodiscard]] absl::Status CheckHello(const security::PeerIdentity* caller,
                                        std::uint32_t slot,
                                        Incarnation incarnation) const;

  /// Checks that no later generation of a caller's slot is a member. `caller`: as above.
  /// Errors: PermissionDenied.
  [[nodiscard]] absl::Status CheckPresent(const security::PeerIdentity* caller) const;

 private:
  struct Newest {
    Incarnation incarnation = 0;
    std::uint64_t generation = 0;
  };

  [[nodiscard]] Newest Find(const security::PeerIdentity& caller) const;

  mutable Mutex mutex_;
  std::map<std::pair<security::Role, std::uint32_t>, Newest> members_
      ABSL_GUARDED_BY(mutex_);  // by slot
};

}  // namespace adamant::service
