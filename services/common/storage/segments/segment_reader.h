#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "services/common/storage/kv_store.h"
#include "services/common/storage/segments/segment_files.h"

namespace adamant::storage {

/// Content of the folder of a SegmentStore on disk, to be read while another process may have it
/// open: what that one writes later is not seen. It may also move or delete what is read here: then
/// that looks damaged, and whoever reads opens the folder anew. Writes nothing.
/// Threads: any.
class SegmentReader final : public KvStore {
 public:
  /// Errors: those of RocksDbStore::OpenToRead and SegmentFiles::Open; DataLoss for a place of a
  /// value that cannot be read.
  static absl::StatusOr<std::unique_ptr<SegmentReader>> Open(const std::filesystem::path& folder);

  absl::StatusOr<std::string> Get(std::string_view key) const override;
  absl::Status Scan(std::string_view prefix,
                    const std::function<bool(std::string_view key, std::string_view value)>& visit)
      const override;

  // These fail with FailedPrecondition.
  absl::Status Write(const std::vector<Change>& changes) override;
  absl::Status WriteLogged(const std::vector<Change>& changes) override;
  absl::Status WriteLazily(const std::vector<Change>& changes) override;
  absl::Status Flush() override;

 private:
  using Places = std::map<std::string, Location, std::less<>>;

  SegmentReader(std::unique_ptr<KvStore> records,
                std::unique_ptr<SegmentFiles> segments,
                Places places);

  // Constant after construction.
  const std::unique_ptr<KvStore> records_;
  const std::unique_ptr<SegmentFiles> segments_;
  const Places places_;
};

}  // namespace adamant::storage
