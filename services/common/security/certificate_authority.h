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

/// Signs the certificates of processes, and says which roots they are to trust: by a root of its
/// own, or by an intermediate that somebody else has signed. What signs is rolled over in three
/// steps, each of which is stored before it is acted on: PrepareNext or PrepareGiven (all trust the
/// next one's roots, too), SwitchToNext (it signs), DropPrevious (roots of the one before that are
/// no more of use are forgotten).
/// Threads: one at a time; Sign and roots from several while nothing changes.
class CertificateAuthority {
 public:
  /// Content of a Secret, by key.
  using Data = std::map<std::string, std::string>;

  /// Makes an authority with a new root that begins now. Errors: Internal.
  static absl::StatusOr<CertificateAuthority> Make(WallTime now, std::chrono::seconds life);

  /// An authority whose certificate somebody else has signed: `chain` begins with it, `roots` are
  /// those that lead to it (PEM, all). Half of kMostRoots at most, as two may be trusted at a time,
  /// and a chain that leaves room for what is signed.
  /// Errors: InvalidArgument.
  static absl::StatusOr<CertificateAuthority> FromIntermediate(std::string_view chain,
                                                               std::string_view key,
                                                               std::string_view roots);

  /// Reads what ToData has written. Errors: InvalidArgument, naming the key; FailedPrecondition for
  /// another format, naming both.
  static absl::StatusOr<CertificateAuthority> FromData(const Data& data);

  /// Keys of intermediates' roots ("signer.ca") are there for these alone.
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

  /// Returns the roots that are to be trusted, each once, as PEM: of what signs, of the next and of
  /// the previous.
  [[nodiscard]] std::string roots() const;

  /// Returns when what signs ends.
  [[nodiscard]] WallTime ends() const { return ends_; }

  /// Returns whether what signs is somebody else's.
  [[nodiscard]] bool is_given() const { return !signer_.roots.empty(); }

  /// Returns whether this signs by the same certificate, of the same roots.
  [[nodiscard]] bool SignsAs(const CertificateAuthority& other) const;

  [[nodiscard]] bool has_next() const { return next_.has_value(); }

  /// Returns whether all who trust what signs now trust the next, too.
  [[nodiscard]] bool next_is_trusted() const;

  [[nodiscard]] bool has_previous() const { return !previous_.empty(); }

  /// Makes a root that will sign later. Errors: FailedPrecondition where there is a next one, or
  /// the previous one is still trusted.
  absl::Status PrepareNext(WallTime now, std::chrono::seconds life);

  /// Likewise, by what `given` signs by. Errors: as PrepareNext.
  absl::Status PrepareGiven(const CertificateAuthority& given);

  /// The next root signs from now on. Errors: FailedPrecondition where there is none.
  absl::Status SwitchToNext();

  /// The root that signed before the switch is trusted no more.
  void DropPrevious() { previous_.clear(); }

 private:
  struct Signer {
    std::string chain;  // PEM: its certificate, what leads to it
    PrivateKey key;
    std::string roots{};  // PEM: of somebody else; empty: it is one
  };

  CertificateAuthority(Signer signer, WallTime ends);

  static absl::StatusOr<Signer> MakeRoot(WallTime now, std::chrono::seconds life);
  static absl::StatusOr<Signer> ReadSigner(const Data& data, const std::string& name);
  static void Write(const Signer& signer, const std::string& name, Data& data);
  static absl::StatusOr<CertificateAuthority> By(Signer signer);
  static const std::string& RootsOf(const Signer& signer);
  [[nodiscard]] absl::Status CheckIsSettled() const;

  Signer signer_;
  WallTime ends_;
  std::optional<Signer> next_;
  std::string previous_;  // PEM: roots; empty: none
};

}  // namespace adamant::security
