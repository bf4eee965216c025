#include "services/common/service/identity_client.h"

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "proto/adamant/v1/certificates.grpc.pb.h"
#include "services/common/base/checksum.h"
#include "services/common/base/log.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/rpc/channel.h"
#include "services/common/rpc/frame.h"
#include "services/common/rpc/resolve.h"
#include "services/common/rpc/status_grpc.h"
#include "services/common/rpc/tls/channel_security.h"
#include "services/common/security/expected_peer.h"
#include "services/common/security/token_verifier.h"

namespace adamant::service {
namespace {

using std::chrono::seconds;

constexpr seconds kIssueTimeout(5);
constexpr std::uint64_t kMaxCertificateBytes = 64 << 10;
constexpr rpc::Liveness kIssueLiveness{.connect = std::chrono::milliseconds(2000)};

// After which a sleeper looks at the clock: that of the machine goes on while it is suspended.
constexpr seconds kLongestSleep(60);

// What is wrong with the file is never PermissionDenied, which is an operator's word.
absl::StatusOr<std::string> ReadToken(const std::filesystem::path& path) {
  absl::StatusOr<std::string> token = ReadFile(path, security::kMostTokenBytes);
  if (!token.ok()) {
    return absl::UnavailableError("--tls-token: " + std::string(token.status().message()));
  }
  while (!token->empty() && token->back() == '\n') {
    token->pop_back();
  }
  return token;
}

}  // namespace

seconds RenewAfter(std::uint32_t said, seconds left) {
  const seconds latest = std::max(2 * left / 3, seconds(1));
  return said == 0 ? latest : std::min(seconds(said), latest);
}

IdentityClient::IdentityClient(Options options)
    : options_(std::move(options)), store_(std::make_shared<security::IdentityStore>()) {}

IdentityClient::~IdentityClient() { Stop(); }

absl::Status IdentityClient::Start(std::function<void(const absl::Status&)> on_replaced) {
  on_replaced_ = std::move(on_replaced);
  ADAMANT_RETURN_IF_ERROR(Obtain(options_.pauses, clock_.WallNow()));
  LogInfo("has a certificate",
          {{"identity", security::FormatIdentity(store_->Get()->content.identity)}});
  thread_ = std::jthread([this] { Renew(); });
  return absl::OkStatus();
}

void IdentityClient::Stop() {
  const MutexLock lock(mutex_);
  stopped_ = true;
  if (call_ != nullptr) {
    call_->TryCancel();
  }
  changed_.NotifyAll();
}

absl::Status IdentityClient::Obtain(const BackoffOptions& pauses, security::WallTime warn_at) {
  const std::string name = security::FormatIdentity(options_.identity);
  Backoff backoff(pauses, Checksum(std::as_bytes(std::span(name))));
  bool warned = false;
  while (true) {
    const absl::Status status = Ask();
    if (status.ok() || absl::IsPermissionDenied(status)) {
      return status;
    }
    if (!SleepUntil(clock_.Now() + backoff.Next())) {
      return absl::CancelledError("told to stop before it had a certificate");
    }
    if (!warned && clock_.WallNow() >= warn_at) {
      warned = true;
      LogWarning(
          "no new certificate, trying on",
          {{"certificates", options_.flags.certificates}, {"why", std::string(status.message())}});
    }
  }
}

// One try.
absl::Status IdentityClient::Ask() {
  ADAMANT_ASSIGN_OR_RETURN(const security::PrivateKey key, security::PrivateKey::Make());
  const std::vector<std::string> addresses = rpc::Resolve(options_.flags.certificates);
  v1::Certificate answer;
  ADAMANT_RETURN_IF_ERROR(Call(addresses[attempts_++ % addresses.size()], key, answer));
  return Accept(answer, key);
}

absl::Status IdentityClient::Call(const std::string& address,
                                  const security::PrivateKey& key,
                                  v1::Certificate& answer) {
  v1::CertificateRequest request;
  ADAMANT_ASSIGN_OR_RETURN(*request.mutable_request(), key.MakeRequest());
  ADAMANT_ASSIGN_OR_RETURN(*request.mutable_token(), ReadToken(options_.flags.tls_token));
  const auto own = store_->Get();
  const rpc::ChannelSecurity security{
      .roots = own == nullptr ? options_.flags.roots : own->roots,
      .peer = security::ExpectOperator(options_.flags.trust_domain)};
  const auto stub = v1::Certificates::NewStub(
      rpc::NewChannel(address, kMaxCertificateBytes, kIssueLiveness, &security));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kIssueTimeout);
  if (!BeginCall(context)) {
    return absl::CancelledError("told to stop");
  }
  const grpc::Status status = stub->Issue(&context, request, &answer);
  EndCall();
  return rpc::FromGrpc(status);
}

// What is not as it should be is as no answer.
absl::Status IdentityClient::Accept(const v1::Certificate& answer,
                                    const security::PrivateKey& key) {
  ADAMANT_RETURN_IF_ERROR(security::CheckRoots(answer.roots()));
  ADAMANT_RETURN_IF_ERROR(CheckIsOwn(answer.chain()));
  ADAMANT_RETURN_IF_ERROR(store_->Set(answer.chain(), key, answer.roots(), clock_.WallNow()));
  const auto left =
      std::chrono::duration_cast<seconds>(store_->Get()->content.not_after - clock_.WallNow());
  renew_at_ = clock_.Now() + RenewAfter(answer.renew_after_seconds(), left);
  return absl::OkStatus();
}

absl::Status IdentityClient::CheckIsOwn(const std::string& chain) const {
  ADAMANT_ASSIGN_OR_RETURN(const security::CertificateContent content,
                           security::ReadCertificate(chain));
  security::PeerIdentity own = options_.identity;
  if (own.job_uid.empty()) {
    own.job_uid = content.identity.job_uid;
  }
  return content.identity == own
             ? absl::OkStatus()
             : absl::InvalidArgumentError("a certificate of " +
                                          security::FormatIdentity(content.identity) +
                                          ", and this is " + security::FormatIdentity(own));
}

void IdentityClient::Renew() {
  while (SleepUntil(renew_at_)) {
    const security::WallTime now = clock_.WallNow();
    const auto rest = store_->Get()->content.not_after - now;
    const absl::Status status = Obtain(options_.renewal_pauses, now + rest / 2);
    if (absl::IsPermissionDenied(status)) {
      on_replaced_(status);
      return;
    }
    if (status.ok()) {
      LogInfo("has renewed its certificate");
    }
  }
}

// False when it is to stop.
bool IdentityClient::BeginCall(grpc::ClientContext& context) {
  const MutexLock lock(mutex_);
  call_ = stopped_ ? nullptr : &context;
  return !stopped_;
}

void IdentityClient::EndCall() {
  const MutexLock lock(mutex_);
  call_ = nullptr;
}

// False when it is to stop.
bool IdentityClient::SleepUntil(Clock::TimePoint time) {
  const MutexLock lock(mutex_);
  while (!stopped_ && clock_.Now() < time) {
    changed_.WaitFor(mutex_, std::min<Clock::Duration>(time - clock_.Now(), kLongestSleep));
  }
  return !stopped_;
}

}  // namespace adamant::service
