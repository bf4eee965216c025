#include "operator/local/run_folder/lost_links.h"

#include <filesystem>
#include <string>

#include "services/common/base/system/files.h"
#include "services/common/storage/rocksdb/file_kinds.h"

namespace adamant::local {
namespace {

// The outermost of a server's links that lead nowhere; "" where none does.
std::filesystem::path LostLinkOf(const RunPaths& paths, std::uint32_t server) {
  const std::filesystem::path shards = paths.shards_of(server);
  for (const std::filesystem::path& folder :
       {paths.store_of(server), shards, shards / "records", shards / "segments"}) {
    if (LeadsNowhere(folder)) {
      return folder;
    }
  }
  return "";
}

}  // namespace

ServerFolders FoldersOf(const controller::JobSettings& settings) {
  return {.count = settings.parameter_servers,
          .copies = settings.only_checkpoints ? 1 : settings.copies};
}

absl::Status CheckLinks(const RunPaths& paths, std::uint32_t server, const ServerFolders& folders) {
  const std::filesystem::path own = LostLinkOf(paths, server);
  if (own.empty()) {
    return absl::OkStatus();
  }
  std::uint32_t lost = 0;
  for (std::uint32_t slot = 0; slot < folders.count; ++slot) {
    lost += LostLinkOf(paths, slot).empty() ? 0 : 1;
  }
  return lost < folders.copies
             ? absl::OkStatus()
             : absl::DataLossError(std::string(storage::CheckIsFolder(own).message()) +
                                   "; nobody else is sure to have what is there: mount what it "
                                   "leads to, or remove the link to go on without, if that can be");
}

}  // namespace adamant::local
