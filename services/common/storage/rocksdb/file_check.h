#pragma once

#include <filesystem>
#include <string_view>

#include "absl/status/status.h"

namespace rocksdb {
class Env;
}  // namespace rocksdb

namespace adamant::storage {

/// End of messages about damage; a store without which its owner cannot go on has other advice.
inline constexpr std::string_view kDamageAdvice =
    "; nothing of this store is used, as what was written last may be missing. Check the disk; "
    "restore the folder, or remove it to begin without what it held";

/// RocksDB opens a store whose logs or manifest have lost their end, or a whole log, without it and
/// without a word: it cannot tell damage from what a loss of power leaves. This tells, by what can
/// be read behind the damage and by the mark that the store has left (FileMark).
/// Error: DataLoss, naming the file and what to do. A cut end of the newest log is no damage,
/// unless the store was closed in order; what tables hold is not looked at. Threads: one at a time.
/// A store that is being written to may look damaged, and may not.
absl::Status CheckFiles(rocksdb::Env& env, const std::filesystem::path& folder);

}  // namespace adamant::storage
