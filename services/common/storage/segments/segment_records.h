#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/storage/kv_store.h"
#include "services/common/storage/segments/segment_files.h"

namespace adamant::storage {

// What a SegmentStore keeps in its records: of each key either the value or the place of it. The
// kind is the first byte of the record's key.
inline constexpr char kValue = 'v';
inline constexpr char kPlace = 'p';

std::string RecordKey(char kind, std::string_view key);

/// None: `bytes` are no place.
std::optional<Location> DecodePlace(std::string_view bytes);

/// These append the changes of records by which a key, or the keys up to `end` unless that is
/// empty, are erased, or set to a value or a place. `had_place`: the key may have one.
void AppendErase(const std::string& key, const std::string& end, std::vector<Change>& records);
void AppendPlace(const std::string& key, const Location& place, std::vector<Change>& records);
void AppendValue(const std::string& key,
                 const std::string& value,
                 bool had_place,
                 std::vector<Change>& records);

}  // namespace adamant::storage
