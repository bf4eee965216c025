#include "services/common/storage/rocksdb/set_aside.h"

#include <system_error>

#include "services/common/base/system/files.h"

namespace adamant::storage {

absl::Status SetAside(const std::filesystem::path& folder) {
  std::filesystem::path aside = folder;
  aside += ".damaged";
  std::error_code error;
  std::filesystem::remove_all(aside, error);
  if (!error) {
    std::filesystem::rename(folder, aside, error);
  }
  return error ? SystemError(error.value(), "cannot replace", aside) : absl::OkStatus();
}

}  // namespace adamant::storage
