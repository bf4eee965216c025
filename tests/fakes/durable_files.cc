#include "tests/fakes/durable_files.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <utility>

namespace adamant::fakes {
namespace {

namespace fs = std::filesystem;

std::string ReadStart(const fs::path& path, std::uint64_t bytes) {
  std::ifstream in(path, std::ios::binary);
  std::string content(bytes, '\0');
  in.read(content.data(), static_cast<std::streamsize>(bytes));
  content.resize(static_cast<std::size_t>(in.gcount()));
  return content;
}

void WriteFile(const fs::path& path, const std::string& content) {
  std::ofstream(path, std::ios::binary)
      .write(content.data(), static_cast<std::streamsize>(content.size()));
}

}  // namespace

std::shared_ptr<DurableFiles::Bytes> DurableFiles::Create(const std::string& path) {
  auto bytes = std::make_shared<Bytes>();
  names_.insert_or_assign(path, Name{bytes, false, DurableContent(path)});
  return bytes;
}

void DurableFiles::Rename(const std::string& from, const std::string& to) {
  const auto source = names_.find(from);
  const std::shared_ptr<Bytes> bytes = source == names_.end() ? nullptr : source->second.bytes;
  names_.insert_or_assign(to, Name{bytes, false, DurableContent(to)});
  names_.erase(from);
}

std::shared_ptr<DurableFiles::Bytes> DurableFiles::Reuse(const std::string& from,
                                                         const std::string& to) {
  names_.erase(from);
  return Create(to);
}

void DurableFiles::SyncFolder(const std::string& folder) {
  for (auto& [path, name] : names_) {
    if (fs::path(path).parent_path() == fs::path(folder)) {
      name.durable = true;
      name.before.reset();
    }
  }
}

void DurableFiles::Survive(const fs::path& from, const fs::path& to, Rng* rng) const {
  fs::create_directories(to);
  const bool names_survive = rng != nullptr && rng->Below(2) == 1;
  for (const auto& entry : fs::directory_iterator(from)) {
    const fs::path copy = to / entry.path().filename();
    if (entry.is_directory()) {
      Survive(entry.path(), copy, rng);
      continue;
    }
    const auto found = names_.find(entry.path().string());
    if (found == names_.end()) {
      fs::copy(entry.path(), copy);
      continue;
    }
    const Name& name = found->second;
    if (!name.durable && !names_survive) {
      if (name.before.has_value()) {
        WriteFile(copy, *name.before);
      }
      continue;
    }
    if (name.bytes == nullptr) {
      fs::copy(entry.path(), copy);
      continue;
    }
    const std::uint64_t unsynced =
        name.bytes->size - std::min(name.bytes->size, name.bytes->synced);
    WriteFile(copy,
              ReadStart(entry.path(),
                        name.bytes->synced + (rng == nullptr ? 0 : rng->Below(unsynced + 1))));
  }
}

std::optional<std::string> DurableFiles::DurableContent(const std::string& path) const {
  const auto found = names_.find(path);
  if (found == names_.end() || found->second.bytes == nullptr) {
    return fs::exists(path) ? std::optional(ReadStart(path, fs::file_size(path))) : std::nullopt;
  }
  const Name& name = found->second;
  return name.durable ? std::optional(ReadStart(path, name.bytes->synced)) : name.before;
}

}  // namespace adamant::fakes
