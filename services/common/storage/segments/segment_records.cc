#include "services/common/storage/segments/segment_records.h"

#include <array>
#include <cstddef>
#include <cstdint>

namespace adamant::storage {
namespace {

std::string EncodePlace(const Location& location) {
  std::string bytes;
  for (const std::uint64_t field :
       {location.segment, location.offset, location.bytes, location.checksum}) {
    for (int shift = 0; shift < 64; shift += 8) {
      bytes.push_back(static_cast<char>(field >> shift));
    }
  }
  return bytes;
}

}  // namespace

std::string RecordKey(char kind, std::string_view key) { return kind + std::string(key); }

std::optional<Location> DecodePlace(std::string_view bytes) {
  std::array<std::uint64_t, 4> fields{};
  if (bytes.size() != sizeof(fields)) {
    return std::nullopt;
  }
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    fields[i / 8] |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (i % 8 * 8);
  }
  return Location{fields[0], fields[1], fields[2], fields[3]};
}

void AppendErase(const std::string& key, const std::string& end, std::vector<Change>& records) {
  for (const char kind : {kValue, kPlace}) {
    records.push_back({RecordKey(kind, key), "", true, end.empty() ? "" : RecordKey(kind, end)});
  }
}

void AppendPlace(const std::string& key, const Location& place, std::vector<Change>& records) {
  records.push_back({RecordKey(kPlace, key), EncodePlace(place)});
  records.push_back({RecordKey(kValue, key), "", true});
}

void AppendValue(const std::string& key,
                 const std::string& value,
                 bool had_place,
                 std::vector<Change>& records) {
  records.push_back({RecordKey(kValue, key), value});
  if (had_place) {
    records.push_back({RecordKey(kPlace, key), "", true});
  }
}

}  // namespace adamant::storage
