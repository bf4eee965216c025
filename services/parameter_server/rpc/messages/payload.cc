#include "services/parameter_server/rpc/messages/payload.h"

#include "proto/adamant/v1/parameter_server.pb.h"
#include "services/common/codec/updates.h"

namespace adamant::parameter_server {

bool FloatReader::Read(std::uint64_t bytes, std::span<const std::byte>& out) {
  if (bytes > rest_.size()) {
    return false;
  }
  out = rest_.first(bytes);
  rest_ = rest_.subspan(bytes);
  return true;
}

bool FloatReader::ReadFloats(std::uint64_t elements, std::span<const float>& values) {
  std::span<const std::byte> bytes;
  if (elements > rest_.size() / sizeof(float) || !Read(elements * sizeof(float), bytes)) {
    return false;
  }
  values = {reinterpret_cast<const float*>(bytes.data()), elements};
  return true;
}

bool ReadOperands(const v1::Operands& header, FloatReader& reader, Operands& operands) {
  operands = codec::Decode(header);
  // Products of two 32-bit numbers fit 64 bits.
  return reader.ReadFloats(std::uint64_t{operands.rows} * operands.inputs, operands.activations) &&
         reader.ReadFloats(std::uint64_t{operands.rows} * operands.outputs, operands.errors);
}

}  // namespace adamant::parameter_server
