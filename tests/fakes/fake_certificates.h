#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "proto/adamant/v1/certificates.grpc.pb.h"
#include "services/common/base/mutex.h"
#include "services/common/rpc/server.h"
#include "services/common/security/identity_store.h"

namespace adamant::fakes {

/// An operator's port for certificates, over real gRPC with TLS: the test says what it answers.
/// Threads: any.
class FakeCertificates final : public v1::Certificates::Service {
 public:
  /// Called on threads of the server, one at a time.
  using Answer = std::function<grpc::Status(const v1::CertificateRequest&, v1::Certificate&)>;

  /// `identity`: what it proves itself with.
  FakeCertificates(std::shared_ptr<const security::IdentityStore> identity, Answer answer);
  ~FakeCertificates() override;

  [[nodiscard]] const std::string& address() const { return server_->address(); }

  void SetAnswer(Answer answer);

  /// The requests so far.
  [[nodiscard]] std::vector<v1::CertificateRequest> requests() const;

  /// For gRPC.
  grpc::Status Issue(grpc::ServerContext* context,
                     const v1::CertificateRequest* request,
                     v1::Certificate* reply) override;

 private:
  mutable Mutex mutex_;
  Answer answer_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::CertificateRequest> requests_ ABSL_GUARDED_BY(mutex_);

  std::unique_ptr<rpc::Server> server_;
};

}  // namespace adamant::fakes
