#include "operator/kube/certificates/authority_keeper.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "operator/kube_client/base/base64.h"
#include "operator/kube_client/base/json.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/security/private_key.h"

namespace adamant::kube {
namespace {

using security::CertificateAuthority;

constexpr std::chrono::seconds kInterval{5};
constexpr std::chrono::seconds kFirstInterval{1};

// As cert-manager has them in its Secrets.
constexpr char kIssuedChain[] = "tls.crt";
constexpr char kIssuedKey[] = "tls.key";
constexpr char kIssuedRoots[] = "ca.crt";

absl::StatusOr<AuthoritySecret::Data> Decoded(const Json& object) {
  AuthoritySecret::Data data;
  const Json* const entries = Find(object, {"data"});
  if (entries == nullptr || !entries->is_object()) {
    return data;
  }
  for (const auto& [key, value] : entries->items()) {
    auto bytes = DecodeBase64(value.is_string() ? value.get<std::string>() : "");
    if (!bytes.ok()) {
      return absl::InvalidArgumentError(key + ": " + std::string(bytes.status().message()));
    }
    data[key] = *std::move(bytes);
  }
  return data;
}

Json Encoded(const AuthoritySecret::Data& data) {
  Json entries = Json::object();
  for (const auto& [key, value] : data) {
    entries[key] = EncodeBase64(value);
  }
  return entries;
}

// A third of its life is left, or nobody who has read the Secret would trust it. It has begun a
// while before it was signed: that is none of its life.
bool IsToBeRenewed(const security::ProcessIdentity& own,
                   const std::string& roots,
                   std::chrono::seconds life,
                   security::WallTime now) {
  const auto left = own.content.not_after - now;
  return left * 3 < std::min<security::WallTime::duration>(
                        life, own.content.not_after - own.content.not_before) ||
         !security::VerifyCertificate(own.chain, roots, now).ok();
}

}  // namespace

AuthorityKeeper::AuthorityKeeper(Client client,
                                 Options options,
                                 const Clock& clock,
                                 Sleeper& sleeper)
    : client_(client.With(cancellation_)),
      options_(std::move(options)),
      clock_(clock),
      sleeper_(sleeper),
      identity_(std::make_shared<security::IdentityStore>()) {}

void AuthorityKeeper::Start(std::function<void()> on_identity) {
  on_identity_ = std::move(on_identity);
  thread_.emplace([this] { return Step(); }, cancellation_, sleeper_);
}

void AuthorityKeeper::Stop() { thread_.reset(); }

void AuthorityKeeper::SetLeads(bool leads) {
  const MutexLock lock(mutex_);
  leads_ = leads;
}

bool AuthorityKeeper::leads() const {
  const MutexLock lock(mutex_);
  return leads_;
}

absl::StatusOr<AuthorityKeeper::Authority> AuthorityKeeper::authority() const {
  const MutexLock lock(mutex_);
  if (authority_ == nullptr) {
    return absl::UnavailableError("there is no certificate authority yet");
  }
  if (clock_.Now() - read_ > kOldest) {
    return absl::UnavailableError("the certificate authority could not be read for a while");
  }
  return authority_;
}

Clock::Duration AuthorityKeeper::Step() {
  const absl::Status kept = Keep();
  if (!kept.ok() && kept != trouble_) {
    LogWarning(
        "the certificate authority cannot be kept",
        {{"secret", ToString(options_.secret)}, {"error", kept.ToString()}, {"leads", leads()}});
  }
  trouble_ = kept;
  if (on_identity_ && identity_->Get() != nullptr) {
    std::exchange(on_identity_, nullptr)();
  }
  return identity_->Get() != nullptr ? kInterval : kFirstInterval;
}

absl::Status AuthorityKeeper::Keep() {
  ADAMANT_ASSIGN_OR_RETURN(Json object, client_.Get(kSecrets, options_.secret));
  ADAMANT_RETURN_IF_ERROR(ReadSecret(object));
  const absl::Status issued = AskIssuer();  // what it gave before goes on
  const auto step = secret_->NextStep(clock_.WallNow());
  if (leads() && step != AuthoritySecret::Step::kNone) {
    ADAMANT_ASSIGN_OR_RETURN(object, TakeStep(step, std::move(object)));
    ADAMANT_RETURN_IF_ERROR(ReadSecret(object));
  }
  Authority authority;
  {
    const MutexLock lock(mutex_);
    read_ = clock_.Now();
    authority = authority_;
  }
  if (authority == nullptr) {
    return issued.ok() ? absl::UnavailableError("nobody has made it yet") : issued;
  }
  ADAMANT_RETURN_IF_ERROR(KeepOwn(*authority));
  return issued;
}

// Only who leads acts by what the issuer gives.
absl::Status AuthorityKeeper::AskIssuer() {
  if (options_.issuer_secret.empty()) {
    return absl::OkStatus();
  }
  if (!leads()) {
    secret_->UseIssuer(std::nullopt);
    return absl::OkStatus();
  }
  absl::StatusOr<CertificateAuthority> given = ReadIssuer();
  secret_->UseIssuer(given.ok() ? std::optional(*given) : std::nullopt);
  return given.ok() ? absl::OkStatus()
                    : absl::Status(given.status().code(),
                                   "the issuer's Secret " + options_.issuer_secret + ": " +
                                       std::string(given.status().message()));
}

// What it gives must do what it is for: once it is stored, all depends on it.
absl::StatusOr<CertificateAuthority> AuthorityKeeper::ReadIssuer() const {
  ADAMANT_ASSIGN_OR_RETURN(const Json object,
                           client_.Get(kSecrets, {options_.secret.ns, options_.issuer_secret}));
  ADAMANT_ASSIGN_OR_RETURN(AuthoritySecret::Data data, Decoded(object));
  for (const char* key : {kIssuedChain, kIssuedKey, kIssuedRoots}) {
    if (data[key].empty()) {
      return absl::UnavailableError(std::string(key) + " is not there");
    }
  }
  ADAMANT_ASSIGN_OR_RETURN(CertificateAuthority given,
                           CertificateAuthority::FromIntermediate(
                               data[kIssuedChain], data[kIssuedKey], data[kIssuedRoots]));
  const security::WallTime now = clock_.WallNow();
  ADAMANT_ASSIGN_OR_RETURN(const auto key, security::PrivateKey::Make());
  ADAMANT_ASSIGN_OR_RETURN(const std::string request, key.MakeRequest());
  ADAMANT_ASSIGN_OR_RETURN(const std::string chain,
                           given.Sign(request, OwnIdentity(), now, options_.life));
  ADAMANT_RETURN_IF_ERROR(security::VerifyCertificate(chain, given.roots(), now).status());
  return given;
}

security::PeerIdentity AuthorityKeeper::OwnIdentity() const {
  return {.trust_domain = options_.trust_domain,
          .name_space = options_.secret.ns,
          .role = security::Role::kOperator,
          .job_uid = ""};
}

// What cannot be read leaves what was read before as it is, and nothing is written over it.
absl::Status AuthorityKeeper::ReadSecret(const Json& object) {
  const std::string version = ResourceVersionOf(object);
  if (secret_ && version == version_) {
    return absl::OkStatus();
  }
  ADAMANT_ASSIGN_OR_RETURN(const AuthoritySecret::Data data, Decoded(object));
  ADAMANT_ASSIGN_OR_RETURN(
      AuthoritySecret secret,
      AuthoritySecret::Read(data,
                            StringAt(object, {"metadata", "annotations", kRollOverAnnotation})));
  secret_ = std::move(secret);
  version_ = version;
  if (secret_->authority()) {
    const auto authority = std::make_shared<const CertificateAuthority>(*secret_->authority());
    TellEnds(*authority);
    const MutexLock lock(mutex_);
    authority_ = authority;
  }
  return absl::OkStatus();
}

// Returns the Secret as it is stored. Aborted: somebody else has written it since it was read.
absl::StatusOr<Json> AuthorityKeeper::TakeStep(AuthoritySecret::Step step, Json object) {
  AuthoritySecret next = *secret_;
  ADAMANT_RETURN_IF_ERROR(next.Take(step, clock_.WallNow(), options_.life));
  object["data"] = Encoded(next.ToData());
  auto stored = client_.Update(kSecrets, std::move(object));
  if (stored.ok()) {
    LogInfo("took a step of the certificate authority", {{"step", StepName(step)}});
  }
  return stored;
}

absl::Status AuthorityKeeper::KeepOwn(const CertificateAuthority& authority) {
  const auto own = identity_->Get();
  const std::string roots = authority.roots();
  if (own == nullptr || IsToBeRenewed(*own, roots, options_.life, clock_.WallNow())) {
    return RenewOwn(authority);
  }
  return own->roots == roots ? absl::OkStatus() : identity_->SetRoots(roots);
}

absl::Status AuthorityKeeper::RenewOwn(const CertificateAuthority& authority) {
  const security::WallTime now = clock_.WallNow();
  ADAMANT_ASSIGN_OR_RETURN(const auto key, security::PrivateKey::Make());
  ADAMANT_ASSIGN_OR_RETURN(const std::string request, key.MakeRequest());
  const security::PeerIdentity own = OwnIdentity();
  ADAMANT_ASSIGN_OR_RETURN(std::string chain, authority.Sign(request, own, now, options_.life));
  ADAMANT_RETURN_IF_ERROR(identity_->Set(std::move(chain), key, authority.roots(), now));
  LogInfo("has a new certificate", {{"identity", security::FormatIdentity(own)}});
  TellEnds(authority);
  return absl::OkStatus();
}

void AuthorityKeeper::TellEnds(const CertificateAuthority& authority) const {
  if (options_.observer == nullptr) {
    return;
  }
  options_.observer->OnEnd(
      authority.is_given() ? CertificateObserver::Kind::kIssuer : CertificateObserver::Kind::kRoot,
      authority.ends());
  if (const auto own = identity_->Get()) {
    options_.observer->OnEnd(CertificateObserver::Kind::kLeaf, own->content.not_after);
  }
}

}  // namespace adamant::kube
