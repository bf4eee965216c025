#pragma once

#include "services/common/checkpoint/sequence_table.h"
#include "services/common/checkpoint/shard_record.h"

// What a shard is, and how it is stored, live and in checkpoints.
namespace adamant::parameter_server {

using checkpoint::DecodeContent;
using checkpoint::DecodeShard;
using checkpoint::EncodeShard;
using checkpoint::LiveShardKey;
using checkpoint::SealShard;
using checkpoint::SequenceTable;
using checkpoint::ShardContent;
using checkpoint::ShardIdentity;
using checkpoint::ShardRecord;

}  // namespace adamant::parameter_server
