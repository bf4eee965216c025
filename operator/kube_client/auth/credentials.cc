#include "operator/kube_client/auth/credentials.h"

#include <algorithm>
#include <utility>

#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"

namespace adamant::kube {
namespace {

// Short enough to notice a rotation before what it replaces expires, which takes minutes at least.
constexpr std::chrono::seconds kReadAgainAfter{5};

/// `text` without the white space around it, if it can stand in a header.
absl::StatusOr<std::string> Token(const TextSource& source) {
  ADAMANT_ASSIGN_OR_RETURN(std::string text, ReadText(source));
  constexpr std::string_view kSpace = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kSpace);
  const std::string token = begin == std::string::npos
                                ? ""
                                : text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
  const bool printable =
      std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 127; });
  if (!source.empty() && (token.empty() || !printable)) {
    return absl::InvalidArgumentError(
        (source.file.empty() ? std::string("the token") : source.file.string()) +
        (token.empty() ? " is empty" : " holds characters that no token has"));
  }
  return token;
}

}  // namespace

Credentials::Credentials(const Config& config, const Clock& clock)
    : config_(config),
      clock_(clock),
      exec_(config.exec ? std::make_unique<ExecCredentials>(config, clock) : nullptr) {}

absl::StatusOr<std::shared_ptr<const Credential>> Credentials::Get(
    const Cancellation& cancellation) {
  return Compose(nullptr, cancellation);
}

absl::StatusOr<std::shared_ptr<const Credential>> Credentials::GetAfter(
    const Credential& refused, const Cancellation& cancellation) {
  return Compose(&refused, cancellation);
}

absl::StatusOr<std::shared_ptr<const Credential>> Credentials::Compose(
    const Credential* refused, const Cancellation& cancellation) {
  ADAMANT_ASSIGN_OR_RETURN(Credential credential, ReadFiles(refused != nullptr));
  const bool needed = credential.token.empty() && credential.tls.certificate.empty();
  if (exec_ && needed) {
    if (refused != nullptr) {
      exec_->Drop(refused->token, refused->tls.certificate);
    }
    ADAMANT_ASSIGN_OR_RETURN(const std::shared_ptr<const ExecCredential> given,
                             exec_->Get(cancellation));
    credential.token = given->token;
    credential.tls.certificate = given->certificate;
    credential.tls.key = given->key;
  }
  const MutexLock lock(mutex_);
  if (current_ == nullptr || *current_ != credential) {
    current_ = std::make_shared<const Credential>(std::move(credential));
  }
  return current_;
}

absl::StatusOr<Credential> Credentials::ReadFiles(bool now) {
  const MutexLock lock(mutex_);
  const Clock::TimePoint time = clock_.Now();
  if (files_ && !now && time - read_at_ < kReadAgainAfter) {
    return *files_;
  }
  absl::StatusOr<Credential> read = ReadAll();
  if (read.ok()) {
    files_ = *std::move(read);
  } else if (files_) {
    LogWarning("credentials cannot be read again; those of before stay in use",
               {{"error", std::string(read.status().message())}});
  } else {
    return std::move(read).status();
  }
  read_at_ = time;
  return *files_;
}

absl::StatusOr<Credential> Credentials::ReadAll() const {
  Credential credential;
  ADAMANT_ASSIGN_OR_RETURN(credential.token, Token(config_.token));
  ADAMANT_ASSIGN_OR_RETURN(credential.tls.authorities, ReadText(config_.authorities));
  ADAMANT_ASSIGN_OR_RETURN(credential.tls.certificate, ReadText(config_.certificate));
  ADAMANT_ASSIGN_OR_RETURN(credential.tls.key, ReadText(config_.key));
  return credential;
}

}  // namespace adamant::kube
