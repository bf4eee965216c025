#pragma once

#include "services/common/protocol/work.h"

namespace adamant::v1 {
class DataFile;
class DataServerProgress;
class Evaluated;
class Lease;
class LeaseResult;
class PartClosed;
}  // namespace adamant::v1

/// As services/common/codec/buckets.h, for work.
namespace adamant::codec {

protocol::Lease Decode(const v1::Lease& message);
void Encode(const protocol::Lease& lease, v1::Lease& message);

protocol::LeaseResult Decode(const v1::LeaseResult& message);
void Encode(const protocol::LeaseResult& result, v1::LeaseResult& message);

protocol::PartClosed Decode(const v1::PartClosed& message);
void Encode(const protocol::PartClosed& closed, v1::PartClosed& message);

protocol::Evaluated Decode(const v1::Evaluated& message);
void Encode(const protocol::Evaluated& evaluated, v1::Evaluated& message);

protocol::DataFile Decode(const v1::DataFile& message);
void Encode(const protocol::DataFile& file, v1::DataFile& message);

protocol::DataServerProgress Decode(const v1::DataServerProgress& message);
void Encode(const protocol::DataServerProgress& progress, v1::DataServerProgress& message);

}  // namespace adamant::codec
