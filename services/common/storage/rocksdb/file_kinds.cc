#include "services/common/storage/rocksdb/file_kinds.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <system_error>

#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/storage/rocksdb/set_aside.h"

namespace adamant::storage {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 5> kNeedless = {
    "IDENTITY", "LOCK", "MARK", "MARK.new", "CLOSED"};
constexpr std::string_view kOptions = "OPTIONS-";

bool IsOptions(std::string_view name) {  // not what has gone aside
  return name.starts_with(kOptions) &&
         name.find_first_not_of("0123456789", kOptions.size()) == std::string_view::npos;
}

bool IsNeedless(std::string_view name) {
  return std::ranges::find(kNeedless, name) != kNeedless.end() || IsOptions(name) ||
         name.ends_with(".dbtmp");
}

bool IsNeeded(std::string_view name) {
  return name == "CURRENT" || name.starts_with("MANIFEST-") || name.ends_with(".log") ||
         name.ends_with(".sst");
}

absl::Status Check(const fs::path& path, fs::file_type wanted) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (error == std::errc::too_many_symbolic_link_levels) {
    return Misplaced(path, fs::file_type::symlink, wanted);
  }
  if (LeadsNowhere(path)) {
    return Misplaced(path, fs::file_type::not_found, wanted);
  }
  if (type == wanted || type == fs::file_type::none || type == fs::file_type::not_found) {
    return absl::OkStatus();  // who opens it says what is wrong, if anything is
  }
  return Misplaced(path, type, wanted);
}

// In no order; nothing where the folder cannot be read.
template <class Do>
absl::Status ForEach(const fs::path& folder, bool (*which)(std::string_view name), Do call) {
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    if (which(at->path().filename().string())) {
      ADAMANT_RETURN_IF_ERROR(call(at->path()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckIsFile(const fs::path& path) { return Check(path, fs::file_type::regular); }

absl::Status CheckIsFolder(const fs::path& path) { return Check(path, fs::file_type::directory); }

absl::Status CheckKinds(const fs::path& folder) {
  ADAMANT_RETURN_IF_ERROR(CheckIsFolder(folder));
  ADAMANT_RETURN_IF_ERROR(ForEach(folder, IsNeeded, CheckIsFile));
  return ForEach(folder, IsNeedless, CheckIsFile);
}

absl::Status SetAsideNeedless(const fs::path& folder) {
  return ForEach(folder, IsNeedless, [](const fs::path& path) {
    return CheckIsFile(path).ok() ? absl::OkStatus() : SetAside(path);
  });
}

}  // namespace adamant::storage
