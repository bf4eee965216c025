#pragma once

#include <memory>
#include <utility>

#include "services/common/rpc/frame.h"
#include "services/common/security/peer_identity.h"

namespace adamant::fakes {

/// A server's end of a stream at whose other end somebody has a certificate. Threads: as
/// FrameStream.
class CertifiedStream final : public rpc::FrameStream {
 public:
  CertifiedStream(std::unique_ptr<rpc::FrameStream> stream, security::PeerIdentity peer)
      : stream_(std::move(stream)), peer_(std::move(peer)) {}

  absl::StatusOr<rpc::IncomingFrame> Read() override { return stream_->Read(); }
  absl::Status Write(rpc::OutgoingFrame frame) override { return stream_->Write(std::move(frame)); }
  void CloseWrites() override { stream_->CloseWrites(); }
  void Cancel() override { stream_->Cancel(); }
  [[nodiscard]] bool Cancelled() override { return stream_->Cancelled(); }
  [[nodiscard]] const security::PeerIdentity* peer() const override { return &peer_; }

 private:
  const std::unique_ptr<rpc::FrameStream> stream_;
  const security::PeerIdentity peer_;
};

}  // namespace adamant::fakes
