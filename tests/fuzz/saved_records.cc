// The files of a checkpoint that is saved whole: as they are, and with the checksum that fits them.

#include <cstring>
#include <span>

#include "operator/local/checkpoints/records_file.h"
#include "services/common/base/check.h"
#include "services/common/base/checksum.h"
#include "tests/fuzz/fuzz.h"

namespace adamant::fuzz {
namespace {

std::string WithItsChecksum(std::string_view input) {
  std::string bytes(input);
  std::uint64_t checksum = 0;
  if (bytes.size() < sizeof(checksum)) {
    return bytes;
  }
  const std::size_t end = bytes.size() - sizeof(checksum);
  checksum = Checksum(std::as_bytes(std::span(bytes)).first(end));
  std::memcpy(bytes.data() + end, &checksum, sizeof(checksum));
  return bytes;
}

}  // namespace

std::vector<std::string> Seeds() {
  return {local::EncodeRecords({}),
          local::EncodeRecords({{"mark", "1 2 3"}, {"shard/00000001", std::string(40, '\0')}})};
}

bool Try(std::string_view input) {
  const bool whole = local::DecodeRecords(input).ok();
  const auto records = local::DecodeRecords(WithItsChecksum(input));
  if (!records.ok()) {
    return whole;
  }
  const auto again = local::DecodeRecords(local::EncodeRecords(*records));
  ADAMANT_CHECK(again.ok() && *again == *records,
                "records are written otherwise than they were read");
  return true;
}

}  // namespace adamant::fuzz
