// A shard as it is stored and copied, behind its checksum.

#include "services/common/checkpoint/shard_record.h"

#include "services/common/base/check.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

using checkpoint::ShardContent;
using checkpoint::ShardIdentity;

constexpr ShardIdentity kIdentity{.job_uid = 7, .shard = 3, .values = 5, .state = 2};

}  // namespace

std::vector<std::string> Seeds() {
  ShardContent content{
      .generation = 1, .lsn = 9, .version = 4, .values = {1, 2, 3, 4, 5}, .state = {6, 7}};
  std::vector<std::string> seeds = {EncodeShard(kIdentity, content)};
  content.sequences = checkpoint::SequenceTable(
      {{.slot = 0, .incarnation = 1, .sequence = 3}, {.slot = 2, .incarnation = 4, .sequence = 1}});
  seeds.push_back(EncodeShard(kIdentity, content));
  return seeds;
}

bool Try(std::string_view input) {
  std::string record(input);
  checkpoint::SealShard(record);
  const auto content = checkpoint::DecodeContent(kIdentity, record);
  if (!content.ok()) {
    return false;
  }
  std::string again = EncodeShard(kIdentity, *content);
  checkpoint::SealShard(again);
  ADAMANT_CHECK(again == record, "a record is written otherwise than it was read");
  return true;
}

}  // namespace adamant::fuzz
