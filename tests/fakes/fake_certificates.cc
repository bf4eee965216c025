#include "tests/fakes/fake_certificates.h"

#include <utility>

#include "services/common/base/check.h"

namespace adamant::fakes {

FakeCertificates::FakeCertificates(std::shared_ptr<const security::IdentityStore> identity,
                                   Answer answer)
    : answer_(std::move(answer)) {
  rpc::ServerOptions options;
  options.security = rpc::ServerSecurity{.identity = std::move(identity),
                                         .method_of_strangers = "/adamant.v1.Certificates/Issue"};
  auto server = rpc::StartServer(options, {this}, {});
  ADAMANT_CHECK(server.ok(), "cannot serve certificates");
  server_ = *std::move(server);
}

FakeCertificates::~FakeCertificates() { server_->Stop(); }

void FakeCertificates::SetAnswer(Answer answer) {
  const MutexLock lock(mutex_);
  answer_ = std::move(answer);
}

std::vector<v1::CertificateRequest> FakeCertificates::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

grpc::Status FakeCertificates::Issue(grpc::ServerContext* /*context*/,
                                     const v1::CertificateRequest* request,
                                     v1::Certificate* reply) {
  const MutexLock lock(mutex_);
  requests_.push_back(*request);
  return answer_(*request, *reply);
}

}  // namespace adamant::fakes
