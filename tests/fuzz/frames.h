#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "services/common/rpc/frame.h"
#include "services/parameter_server/core/serving/parameter_server.h"

// What the targets share that read frames of parameter servers.
namespace adamant::fuzz {

/// The bytes that a transport sends for a frame.
std::string BytesOf(const rpc::OutgoingFrame& frame);

/// The frame that a transport makes of the bytes, in two pieces, as it may cut them anywhere.
/// Errors: of rpc::DecodeFrame.
absl::StatusOr<rpc::IncomingFrame> FrameOf(std::string_view bytes);

/// A layer with weights [4, 3], whose optimiser runs on the server, and biases [4], whose optimiser
/// runs on the workers.
std::vector<Parameter> SmallLayer();

/// A server of such a model, in two buckets, for two workers.
parameter_server::ParameterServerOptions SmallServer();

}  // namespace adamant::fuzz
