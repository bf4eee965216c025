#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/security/certificate.h"
#include "services/common/security/peer_identity.h"
#include "services/common/security/private_key.h"

namespace adamant::security {

/// Signs the certificates of processes, and says which roots they are to trust. A root of its own
/// is rolled over in three steps, each of which is stored before it is acted on: PrepareNext (all
/// trust the next one, too), SwitchToNext (it signs), DropPrevious (the one before is forgotten).
/// Threads: one at a time; Sign and roots from several while nothing changes.
class CertificateAuthority {
 public:
  /// Content of a Secret, by key.
  using Data = std::map<std::string, std::string>;

  /// Makes an authority with a new root that begins now. Errors: Internal.
  static absl::StatusOr<CertificateAuthority> Make(WallTime now, std::chrono::seconds life);

  /// An authority whose certificate somebody else has signed: `chain` begins with it, `roots` are
  /// those that lead to it (PEM, all). It is not rolled over here, nor written as data.
  /// Errors: InvalidArgument.
  static absl::StatusOr<CertificateAuthority> FromIntermediate(std::string_view chain,
                                                               std::string_view key,
                                                               std::string_view roots);

  /// Reads what ToData has written. Errors: InvalidArgument, naming the key; FailedPrecondition for
  /// another format, naming both.
  static absl::StatusOr<CertificateAuthority> FromData(const Data& data);

  /// Of an authority with a root of its own.
  [[nodiscard]] Data ToData() const;

  /// Signs the key of a request for the process of this identity. Returns the certificate, and what
  /// leads from it to a root, as PEM. It begins five minutes ago, as clocks differ, and ends after
  /// `life`, but not after what signs it.
  /// Errors: InvalidArgument as ReadRequest and CheckIdentity; FailedPrecondition if what would
  /// sign it has ended.
  [[nodiscard]] absl::StatusOr<std::string> Sign(std::string_view request,
                                                 const PeerIdentity& identity,
                                                 WallTime now,
                                                 std::chrono::seconds life) const;

  /// Returns the roots that are to be trusted, as PEM: that which signs, the next and the previous.
  [[nodiscard]] std::string roots() const;

  /// Returns when what signs ends.
  [[nodiscard]] WallTime ends() const { return ends_; }

  [[nodiscard]] bool has_next() const { return next_.has_value(); }
  [[nodiscard]] bool has_previous() const { return !previous_.empty(); }

  /// Makes a root that will sign later. Errors: FailedPrecondition where there is one, or the
  /// previous one is still trusted, or the root is somebody else's.
  absl::Status PrepareNext(WallTime now, std::chrono::seconds life);

  /// The next root signs from now on. Errors: FailedPrecondition where there is none.
  absl::Status SwitchToNext();

  /// The root that signed before the switch is trusted no more.
  void DropPrevious() { previous_.clear(); }

 private:
  struct Signer {
    std::string chain;  // PEM: its certificate, what leads to it
    PrivateKey key;
  };

  CertificateAuthority(Signer signer, std::string other_roots, WallTime ends);

  static absl::StatusOr<Signer> MakeRoot(WallTime now, std::chrono::seconds life);
  static absl::StatusOr<Signer> ReadRoot(const Data& data, const std::string& name);
  static absl::StatusOr<CertificateAuthority> Own(Signer signer);

  Signer signer_;
  std::string other_roots_;  // PEM: of somebody else; empty: signer_ is a root
  WallTime ends_;
  std::optional<Signer> next_;
  std::string previous_;  // PEM; empty: none
};

}  // namespace adamant::security
