#include "services/common/security/certificate_authority.h"

#include <algorithm>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/security/certificate_builder.h"

namespace adamant::security {
namespace {

constexpr char kFormat[] = "1";
constexpr char kFormatKey[] = "format";
constexpr char kSigner[] = "signer";
constexpr char kNext[] = "next";
constexpr char kPrevious[] = "previous";

std::string CertificateKey(const std::string& name) { return name + ".crt"; }
std::string PrivateKeyKey(const std::string& name) { return name + ".key"; }
std::string RootsKey(const std::string& name) { return name + ".ca"; }

// The certificates of `pem` that are not in `others`, as ToPem writes them.
std::string Without(std::string_view pem, std::string_view others) {
  constexpr std::string_view kEnd = "-----END CERTIFICATE-----\n";
  std::string rest;
  for (std::size_t end = pem.find(kEnd); end != std::string_view::npos; end = pem.find(kEnd)) {
    const std::string_view certificate = pem.substr(0, end + kEnd.size());
    if (others.find(certificate) == std::string_view::npos) {
      rest += certificate;
    }
    pem.remove_prefix(certificate.size());
  }
  return rest;
}

std::string_view Find(const CertificateAuthority::Data& data, const std::string& key) {
  const auto found = data.find(key);
  return found == data.end() ? std::string_view() : found->second;
}

absl::Status Invalid(const std::string& key, const absl::Status& why) {
  return absl::InvalidArgumentError(key + ": " + std::string(why.message()));
}

}  // namespace

CertificateAuthority::CertificateAuthority(Signer signer, WallTime ends)
    : signer_(std::move(signer)), ends_(ends) {}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Make(WallTime now,
                                                                std::chrono::seconds life) {
  ADAMANT_ASSIGN_OR_RETURN(Signer root, MakeRoot(now, life));
  return By(std::move(root));
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::FromIntermediate(
    std::string_view chain, std::string_view key, std::string_view roots) {
  ADAMANT_ASSIGN_OR_RETURN(PrivateKey own, PrivateKey::FromPem(key));
  ADAMANT_RETURN_IF_ERROR(CheckSigner(chain, own));
  ADAMANT_RETURN_IF_ERROR(CheckLeads(roots, chain));
  Signer signer{.chain = {}, .key = std::move(own)};
  ADAMANT_ASSIGN_OR_RETURN(signer.chain, Rewrite(chain, kMostChain - 1));
  ADAMANT_ASSIGN_OR_RETURN(signer.roots, Rewrite(roots, kMostRoots / 2));
  return By(std::move(signer));
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::FromData(const Data& data) {
  if (const std::string_view format = Find(data, kFormatKey); format != kFormat) {
    return absl::FailedPreconditionError("the certificate authority is stored in format \"" +
                                         std::string(format.substr(0, 16)) +
                                         "\", this program knows format " + kFormat);
  }
  ADAMANT_ASSIGN_OR_RETURN(Signer signer, ReadSigner(data, kSigner));
  ADAMANT_ASSIGN_OR_RETURN(CertificateAuthority authority, By(std::move(signer)));
  if (data.contains(CertificateKey(kNext))) {
    ADAMANT_ASSIGN_OR_RETURN(authority.next_, ReadSigner(data, kNext));
  }
  if (const auto previous = data.find(CertificateKey(kPrevious)); previous != data.end()) {
    if (const absl::Status status = CheckRoots(previous->second); !status.ok()) {
      return Invalid(previous->first, status);
    }
    authority.previous_ = previous->second;
  }
  return authority;
}

CertificateAuthority::Data CertificateAuthority::ToData() const {
  Data data = {{kFormatKey, kFormat}};
  Write(signer_, kSigner, data);
  if (next_) {
    Write(*next_, kNext, data);
  }
  if (has_previous()) {
    data[CertificateKey(kPrevious)] = previous_;
  }
  return data;
}

absl::StatusOr<std::string> CertificateAuthority::Sign(std::string_view request,
                                                       const PeerIdentity& identity,
                                                       WallTime now,
                                                       std::chrono::seconds life) const {
  ADAMANT_RETURN_IF_ERROR(CheckIdentity(identity));
  if (now >= ends_) {
    return absl::FailedPreconditionError("the certificate that signs others has ended");
  }
  ADAMANT_ASSIGN_OR_RETURN(const auto key, ReadRequest(request));
  ADAMANT_ASSIGN_OR_RETURN(std::string chain,
                           BuildLeaf(key,
                                     identity,
                                     {.begin = now, .end = std::min(now + life, ends_)},
                                     {.certificate = signer_.chain, .key = signer_.key}));
  return is_given() ? chain + signer_.chain : chain;
}

std::string CertificateAuthority::roots() const {
  std::string all = RootsOf(signer_);
  if (next_) {
    all += Without(RootsOf(*next_), all);
  }
  return all + Without(previous_, all);
}

bool CertificateAuthority::SignsAs(const CertificateAuthority& other) const {
  return signer_.chain == other.signer_.chain && signer_.roots == other.signer_.roots;
}

bool CertificateAuthority::next_is_trusted() const {
  return next_ && Without(RootsOf(*next_), RootsOf(signer_)).empty();
}

absl::Status CertificateAuthority::CheckIsSettled() const {
  return next_ || has_previous()
             ? absl::FailedPreconditionError("a root is being rolled over already")
             : absl::OkStatus();
}

absl::Status CertificateAuthority::PrepareNext(WallTime now, std::chrono::seconds life) {
  ADAMANT_RETURN_IF_ERROR(CheckIsSettled());
  ADAMANT_ASSIGN_OR_RETURN(next_, MakeRoot(now, life));
  return absl::OkStatus();
}

absl::Status CertificateAuthority::PrepareGiven(const CertificateAuthority& given) {
  ADAMANT_RETURN_IF_ERROR(CheckIsSettled());
  next_ = given.signer_;
  return absl::OkStatus();
}

absl::Status CertificateAuthority::SwitchToNext() {
  if (!next_) {
    return absl::FailedPreconditionError("there is no next root");
  }
  ADAMANT_ASSIGN_OR_RETURN(ends_, EndOf(next_->chain));
  const Signer before = std::exchange(signer_, *std::exchange(next_, std::nullopt));
  previous_ = Without(RootsOf(before), RootsOf(signer_));
  return absl::OkStatus();
}

absl::StatusOr<CertificateAuthority::Signer> CertificateAuthority::MakeRoot(
    WallTime now, std::chrono::seconds life) {
  ADAMANT_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  ADAMANT_ASSIGN_OR_RETURN(std::string root, BuildRoot(key, {.begin = now, .end = now + life}));
  return Signer{.chain = std::move(root), .key = std::move(key)};
}

absl::StatusOr<CertificateAuthority::Signer> CertificateAuthority::ReadSigner(
    const Data& data, const std::string& name) {
  absl::StatusOr<PrivateKey> key = PrivateKey::FromPem(Find(data, PrivateKeyKey(name)));
  if (!key.ok()) {
    return Invalid(PrivateKeyKey(name), key.status());
  }
  const std::string_view chain = Find(data, CertificateKey(name));
  if (const absl::Status status = CheckSigner(chain, *key); !status.ok()) {
    return Invalid(CertificateKey(name), status);
  }
  const std::string_view roots = Find(data, RootsKey(name));
  if (const absl::Status status = CheckLeads(roots.empty() ? chain : roots, chain); !status.ok()) {
    return Invalid(roots.empty() ? CertificateKey(name) : RootsKey(name), status);
  }
  return Signer{.chain = std::string(chain), .key = *std::move(key), .roots = std::string(roots)};
}

void CertificateAuthority::Write(const Signer& signer, const std::string& name, Data& data) {
  data[CertificateKey(name)] = signer.chain;
  data[PrivateKeyKey(name)] = signer.key.ToPem();
  if (!signer.roots.empty()) {
    data[RootsKey(name)] = signer.roots;
  }
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::By(Signer signer) {
  ADAMANT_ASSIGN_OR_RETURN(const WallTime ends, EndOf(signer.chain));
  return CertificateAuthority(std::move(signer), ends);
}

const std::string& CertificateAuthority::RootsOf(const Signer& signer) {
  return signer.roots.empty() ? signer.chain : signer.roots;
}

}  // namespace adamant::security
