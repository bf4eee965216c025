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

std::string_view Find(const CertificateAuthority::Data& data, const std::string& key) {
  const auto found = data.find(key);
  return found == data.end() ? std::string_view() : found->second;
}

absl::Status Invalid(const std::string& key, const absl::Status& why) {
  return absl::InvalidArgumentError(key + ": " + std::string(why.message()));
}

}  // namespace

CertificateAuthority::CertificateAuthority(Signer signer, std::string other_roots, WallTime ends)
    : signer_(std::move(signer)), other_roots_(std::move(other_roots)), ends_(ends) {}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Make(WallTime now,
                                                                std::chrono::seconds life) {
  ADAMANT_ASSIGN_OR_RETURN(Signer root, MakeRoot(now, life));
  return Own(std::move(root));
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::FromIntermediate(
    std::string_view chain, std::string_view key, std::string_view roots) {
  ADAMANT_ASSIGN_OR_RETURN(PrivateKey own, PrivateKey::FromPem(key));
  ADAMANT_RETURN_IF_ERROR(CheckSigner(chain, own));
  ADAMANT_RETURN_IF_ERROR(CheckLeads(roots, chain));
  ADAMANT_ASSIGN_OR_RETURN(const WallTime ends, EndOf(chain));
  return CertificateAuthority(
      {.chain = std::string(chain), .key = std::move(own)}, std::string(roots), ends);
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::FromData(const Data& data) {
  if (const std::string_view format = Find(data, kFormatKey); format != kFormat) {
    return absl::FailedPreconditionError("the certificate authority is stored in format \"" +
                                         std::string(format.substr(0, 16)) +
                                         "\", this program knows format " + kFormat);
  }
  ADAMANT_ASSIGN_OR_RETURN(Signer signer, ReadRoot(data, kSigner));
  ADAMANT_ASSIGN_OR_RETURN(CertificateAuthority authority, Own(std::move(signer)));
  if (data.contains(CertificateKey(kNext))) {
    ADAMANT_ASSIGN_OR_RETURN(authority.next_, ReadRoot(data, kNext));
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
  Data data = {{kFormatKey, kFormat},
               {CertificateKey(kSigner), signer_.chain},
               {PrivateKeyKey(kSigner), signer_.key.ToPem()}};
  if (next_) {
    data[CertificateKey(kNext)] = next_->chain;
    data[PrivateKeyKey(kNext)] = next_->key.ToPem();
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
  return other_roots_.empty() ? chain : chain + signer_.chain;
}

std::string CertificateAuthority::roots() const {
  return (other_roots_.empty() ? signer_.chain : other_roots_) + (next_ ? next_->chain : "") +
         previous_;
}

absl::Status CertificateAuthority::PrepareNext(WallTime now, std::chrono::seconds life) {
  if (next_ || has_previous() || !other_roots_.empty()) {
    return absl::FailedPreconditionError(
        other_roots_.empty() ? "a root is being rolled over already" : "the root is not ours");
  }
  ADAMANT_ASSIGN_OR_RETURN(next_, MakeRoot(now, life));
  return absl::OkStatus();
}

absl::Status CertificateAuthority::SwitchToNext() {
  if (!next_) {
    return absl::FailedPreconditionError("there is no next root");
  }
  ADAMANT_ASSIGN_OR_RETURN(ends_, EndOf(next_->chain));
  previous_ = std::exchange(signer_, *std::exchange(next_, std::nullopt)).chain;
  return absl::OkStatus();
}

absl::StatusOr<CertificateAuthority::Signer> CertificateAuthority::MakeRoot(
    WallTime now, std::chrono::seconds life) {
  ADAMANT_ASSIGN_OR_RETURN(PrivateKey key, PrivateKey::Make());
  ADAMANT_ASSIGN_OR_RETURN(std::string root, BuildRoot(key, {.begin = now, .end = now + life}));
  return Signer{.chain = std::move(root), .key = std::move(key)};
}

absl::StatusOr<CertificateAuthority::Signer> CertificateAuthority::ReadRoot(
    const Data& data, const std::string& name) {
  absl::StatusOr<PrivateKey> key = PrivateKey::FromPem(Find(data, PrivateKeyKey(name)));
  if (!key.ok()) {
    return Invalid(PrivateKeyKey(name), key.status());
  }
  const std::string_view root = Find(data, CertificateKey(name));
  absl::Status status = CheckSigner(root, *key);
  if (status.ok()) {
    status = CheckLeads(root, root);
  }
  if (!status.ok()) {
    return Invalid(CertificateKey(name), status);
  }
  return Signer{.chain = std::string(root), .key = *std::move(key)};
}

absl::StatusOr<CertificateAuthority> CertificateAuthority::Own(Signer signer) {
  ADAMANT_ASSIGN_OR_RETURN(const WallTime ends, EndOf(signer.chain));
  return CertificateAuthority(std::move(signer), "", ends);
}

}  // namespace adamant::security
