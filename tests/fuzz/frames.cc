#include "tests/fuzz/frames.h"

#include <memory>
#include <span>

#include "services/common/rpc/wire.h"

namespace adamant::fuzz {

std::string BytesOf(const rpc::OutgoingFrame& frame) {
  std::string bytes = rpc::EncodeFront(frame.header);
  for (const rpc::LentBytes& piece : frame.payload) {
    bytes.append(reinterpret_cast<const char*>(piece.bytes.data()), piece.bytes.size());
  }
  return bytes;
}

absl::StatusOr<rpc::IncomingFrame> FrameOf(std::string_view bytes) {
  const auto owner = std::make_shared<const std::string>(bytes);
  const std::span<const std::byte> all = std::as_bytes(std::span(*owner));
  const std::size_t half = all.size() / 2;
  return rpc::DecodeFrame({all.first(half), all.subspan(half)}, owner);
}

std::vector<Parameter> SmallLayer() {
  return {{.name = "fc.weight",
           .layer = "fc",
           .shape = {4, 3},
           .initialisation = Initialisation::kHe,
           .fan_in = 3},
          {.name = "fc.bias", .layer = "fc", .shape = {4}}};
}

parameter_server::ParameterServerOptions SmallServer() {
  return {.job_uid = 7,
          .self = {.slot = 0, .incarnation = 1},
          .writers = 2,
          .seed = 5,
          .parameters = SmallLayer(),
          .buckets = 2,
          .optimisers = {{.kind = OptimiserKind::kMomentum,
                          .location = OptimiserLocation::kServer,
                          .rate = 0.1,
                          .momentum = 0.9},
                         {.location = OptimiserLocation::kWorker}}};
}

}  // namespace adamant::fuzz
