#include "operator/kube/certificates/authority_secret.h"

#include <algorithm>
#include <set>
#include <utility>

#include "operator/kube_client/base/time.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

using security::CertificateAuthority;
using Data = AuthoritySecret::Data;

constexpr char kSwitchAt[] = "switch-at";
constexpr char kDropAt[] = "drop-at";
constexpr char kHandled[] = "roll-over-handled";
constexpr std::chrono::hours kLongestCall{1};  // after its certificate has ended

// As CertificateAuthority has them, and those above.
const std::set<std::string>& KnownKeys() {
  static const std::set<std::string> keys = {"format",
                                             "signer.crt",
                                             "signer.key",
                                             "signer.ca",
                                             "next.crt",
                                             "next.key",
                                             "next.ca",
                                             "previous.crt",
                                             kSwitchAt,
                                             kDropAt,
                                             kHandled};
  return keys;
}

absl::StatusOr<WallTime> TimeIn(const Data& data, const char* key) {
  const auto found = data.find(key);
  const auto time = ParseTime(found == data.end() ? "" : found->second);
  return time.ok() ? time
                   : absl::InvalidArgumentError(std::string(key) + ": no time like " +
                                                FormatTime(WallTime()));
}

}  // namespace

absl::StatusOr<AuthoritySecret> AuthoritySecret::Read(const Data& data, std::string roll_over) {
  AuthoritySecret secret;
  secret.roll_over_ = std::move(roll_over);
  if (data.empty()) {
    return secret;
  }
  ADAMANT_ASSIGN_OR_RETURN(secret.authority_, CertificateAuthority::FromData(data));
  if (secret.authority_->has_next()) {
    ADAMANT_ASSIGN_OR_RETURN(secret.switch_at_, TimeIn(data, kSwitchAt));
  }
  if (secret.authority_->has_previous()) {
    ADAMANT_ASSIGN_OR_RETURN(secret.drop_at_, TimeIn(data, kDropAt));
  }
  for (const auto& [key, value] : data) {
    if (key == kHandled) {
      secret.handled_ = value;
    } else if (!KnownKeys().contains(key)) {
      secret.other_.emplace(key, value);
    }
  }
  return secret;
}

void AuthoritySecret::UseIssuer(std::optional<CertificateAuthority> given) {
  has_issuer_ = true;
  given_ = std::move(given);
}

AuthoritySecret::Step AuthoritySecret::NextStep(WallTime now) const {
  if (!authority_) {
    return has_issuer_ && !given_ ? Step::kNone : Step::kMake;
  }
  if (authority_->has_next()) {
    return now >= switch_at_ ? Step::kSwitchToNext : Step::kNone;
  }
  if (authority_->has_previous()) {
    return now >= drop_at_ ? Step::kDropPrevious : Step::kNone;
  }
  return WantsNext(now) ? Step::kPrepareNext : Step::kNone;
}

bool AuthoritySecret::WantsNext(WallTime now) const {
  if (has_issuer_) {
    return given_ && !authority_->SignsAs(*given_);
  }
  const bool is_asked_for = !roll_over_.empty() && roll_over_ != handled_;
  const bool is_old = authority_->ends() - now < kRootLife / 3;
  return is_asked_for || is_old || authority_->is_given();
}

absl::Status AuthoritySecret::Take(Step step, WallTime now, std::chrono::seconds life) {
  switch (step) {
    case Step::kNone:
      return absl::OkStatus();
    case Step::kMake:
      return Make(now);
    case Step::kPrepareNext:
      return PrepareNext(now, life);
    case Step::kSwitchToNext:
      drop_at_ = now + life + kLongestCall + kSlack;
      return authority_->SwitchToNext();
    case Step::kDropPrevious:
      authority_->DropPrevious();
      return absl::OkStatus();
  }
  return absl::OkStatus();
}

// What was asked for before there was anything to roll over is done with that.
absl::Status AuthoritySecret::Make(WallTime now) {
  if (given_) {
    authority_ = given_;
  } else {
    ADAMANT_ASSIGN_OR_RETURN(authority_, CertificateAuthority::Make(now, kRootLife));
  }
  handled_ = roll_over_;
  return absl::OkStatus();
}

// What signs may end before all that it has signed would be gone by the clock: an issuer's lasts as
// long as that likes.
absl::Status AuthoritySecret::PrepareNext(WallTime now, std::chrono::seconds life) {
  ADAMANT_RETURN_IF_ERROR(given_ ? authority_->PrepareGiven(*given_)
                                 : authority_->PrepareNext(now, kRootLife));
  switch_at_ = authority_->next_is_trusted()
                   ? now
                   : std::min(now + life + kSlack, std::max(now, authority_->ends() - kSlack));
  if (!roll_over_.empty()) {
    handled_ = roll_over_;
  }
  return absl::OkStatus();
}

AuthoritySecret::Data AuthoritySecret::ToData() const {
  Data data = authority_ ? authority_->ToData() : Data();
  data.insert(other_.begin(), other_.end());
  if (authority_ && authority_->has_next()) {
    data[kSwitchAt] = FormatTime(switch_at_);
  }
  if (authority_ && authority_->has_previous()) {
    data[kDropAt] = FormatTime(drop_at_);
  }
  if (!handled_.empty()) {
    data[kHandled] = handled_;
  }
  return data;
}

std::string_view StepName(AuthoritySecret::Step step) {
  switch (step) {
    case AuthoritySecret::Step::kNone:
      return "none";
    case AuthoritySecret::Step::kMake:
      return "make";
    case AuthoritySecret::Step::kPrepareNext:
      return "prepare";
    case AuthoritySecret::Step::kSwitchToNext:
      return "switch";
    case AuthoritySecret::Step::kDropPrevious:
      return "drop";
  }
  return "none";
}

}  // namespace adamant::kube
