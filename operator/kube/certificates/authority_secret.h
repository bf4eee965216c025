#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "services/common/security/certificate.h"
#include "services/common/security/certificate_authority.h"

namespace adamant::kube {

/// Content of the Secret that keeps the operators' certificate authority, and which step its roots
/// take next. A roll-over goes by time: a root is trusted with every certificate that is issued
/// after it was prepared, so that it may sign once those from before have ended; the one before it
/// is dropped once what it has signed has ended, and with it the calls that came with that.
///
/// Each step is to be stored, by who compares what is there, before anything is done by it.
/// Threads: one at a time.
class AuthoritySecret {
 public:
  using Data = security::CertificateAuthority::Data;
  using WallTime = security::WallTime;

  enum class Step : std::uint8_t { kNone, kMake, kPrepareNext, kSwitchToNext, kDropPrevious };

  /// Life of a root. The next is prepared when a third of it is left.
  static constexpr std::chrono::hours kRootLife{24 * 365};

  /// By which operators may differ in what they have read of the Secret.
  static constexpr std::chrono::minutes kSlack{10};

  /// Reads the data of a Secret; without any there is no authority yet. `roll_over` is what the
  /// annotation kRollOverAnnotation says; "": nothing.
  /// Errors: as CertificateAuthority::FromData; InvalidArgument, naming the key, for a time that is
  /// missing or none.
  static absl::StatusOr<AuthoritySecret> Read(const Data& data, std::string roll_over);

  /// Returns the authority, if there is one.
  [[nodiscard]] const std::optional<security::CertificateAuthority>& authority() const {
    return authority_;
  }

  /// Lets an issuer's certificate sign, from the next step that is taken on, in place of roots that
  /// are made here: `given`, or what it gave before where that is none.
  void UseIssuer(std::optional<security::CertificateAuthority> given);

  /// Returns the step that is due. An issuer's roots that are trusted already need no overlap.
  [[nodiscard]] Step NextStep(WallTime now) const;

  /// Takes a step that is due. `life`: the longest that certificates have which were issued until
  /// now. Errors: Internal.
  absl::Status Take(Step step, WallTime now, std::chrono::seconds life);

  /// Returns what is to be stored: keys that are not known here stay.
  [[nodiscard]] Data ToData() const;

 private:
  AuthoritySecret() = default;

  absl::Status Make(WallTime now);
  absl::Status PrepareNext(WallTime now, std::chrono::seconds life);
  [[nodiscard]] bool WantsNext(WallTime now) const;

  std::optional<security::CertificateAuthority> authority_;
  WallTime switch_at_;     // where there is a next root
  WallTime drop_at_;       // where there is a previous one
  std::string roll_over_;  // that is asked for
  std::string handled_;    // that was asked for last, and is or was made
  Data other_;             // of keys that are not known here

  bool has_issuer_ = false;
  std::optional<security::CertificateAuthority> given_;  // by it; none: not known now
};

/// Annotation of the Secret: a value that was not handled yet asks for new roots.
inline constexpr char kRollOverAnnotation[] = "adamant.dev/roll-over";

/// For logs.
std::string_view StepName(AuthoritySecret::Step step);

}  // namespace adamant::kube
