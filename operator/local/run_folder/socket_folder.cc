#include "operator/local/run_folder/socket_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <system_error>
#include <utility>

#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/base/system/listen.h"

namespace adamant::local {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr std::string_view kTemplate = "adamant-XXXXXX";
constexpr std::string_view kController = "c";

// Leaves room for the longest name: a letter, slot and generation.
constexpr std::size_t kMostBytes = 60;
constexpr std::size_t kMostNameBytes = std::string_view("/p4294967295.18446744073709551615").size();
static_assert(kMostBytes + kMostNameBytes <= kMostSocketPathBytes);

// gRPC reads an address as a URI, and several of them are separated by commas.
bool IsPlain(std::string_view path) {
  return std::ranges::all_of(path, [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("/._-").find(static_cast<char>(c)) != std::string_view::npos;
  });
}

// Whether only we, and root, can put something else in the place of what is in the folder.
bool IsKept(const std::filesystem::path& folder) {
  struct stat about {};
  if (lstat(folder.c_str(), &about) != 0) {
    return false;
  }
  const bool is_ours = about.st_uid == 0 || about.st_uid == geteuid();
  const bool is_open = (about.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  const bool is_sticky = (about.st_mode & S_ISVTX) != 0;
  return is_ours && (!is_open || is_sticky);
}

// The first of a folder and those above it that others may put something else in; empty: none.
std::filesystem::path OpenToOthers(std::filesystem::path folder) {
  for (; IsKept(folder); folder = folder.parent_path()) {
    if (folder == folder.parent_path()) {
      return {};
    }
  }
  return folder;
}

// Empty, or why the folder cannot be made in `parent`, a path without links. Of the run's folder
// none above is looked at: who may put another in its place has the run.
std::string WhyNotIn(const std::filesystem::path& parent, bool is_run) {
  const std::string& path = parent.native();
  if (path.size() + 1 + kTemplate.size() > kMostBytes) {
    return "its path is too long for sockets";
  }
  if (!IsPlain(path)) {
    return "its path has other characters than letters, digits and /._-";
  }
  if (!std::filesystem::is_directory(parent)) {
    return "it is no folder";
  }
  const std::filesystem::path open = OpenToOthers(parent);
  return open.empty() || (is_run && open != parent)
             ? ""
             : "other users may move what is in " + open.string();
}

// Opens a folder and locks it, where its file system has locks; -1 where another program has it.
int OpenLocked(const std::filesystem::path& folder) {
  const int lock = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    close(lock);
    return -1;
  }
  return lock;
}

// Removes a folder in which nothing but sockets is, and closes it. Its path may be another's now:
// what is removed is in the folder that is open.
void RemoveAndClose(const std::filesystem::path& folder, int open_folder) {
  DIR* const listing = fdopendir(open_folder);
  if (listing == nullptr) {
    close(open_folder);
    return;
  }
  struct stat about {};
  while (const dirent* const entry = readdir(listing)) {
    if (fstatat(open_folder, entry->d_name, &about, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISSOCK(about.st_mode)) {
      unlinkat(open_folder, entry->d_name, 0);
    }
  }
  rmdir(folder.c_str());  // fails where something is in it
  closedir(listing);
}

// Whether it is one of ours, from what its name and owner say.
bool IsSocketFolder(const std::filesystem::path& folder) {
  const std::string name = folder.filename().string();
  struct stat about {};
  return name.size() == kTemplate.size() && name.starts_with(kTemplate.substr(0, 8)) &&
         lstat(folder.c_str(), &about) == 0 && S_ISDIR(about.st_mode) &&
         about.st_uid == geteuid() && (about.st_mode & 0777) == 0700;
}

// A run's folder may have been copied while it ran: then another program has it.
void RemoveEarlier(const RunPaths& paths) {
  const std::string endpoint = ReadFile(paths.endpoint(), 256).value_or("");
  if (!endpoint.starts_with(kUnix)) {
    return;
  }
  const auto folder = std::filesystem::path(endpoint.substr(kUnix.size())).parent_path();
  if (!IsSocketFolder(folder)) {
    return;
  }
  if (const int lock = OpenLocked(folder); lock >= 0) {
    RemoveAndClose(folder, lock);
  }
}

}  // namespace

absl::StatusOr<SocketFolder> SocketFolder::Make(const RunPaths& paths,
                                                const std::vector<std::filesystem::path>& parents) {
  RemoveEarlier(paths);
  std::string all;
  for (const std::filesystem::path& parent : parents) {
    std::error_code error;
    const std::filesystem::path resolved = std::filesystem::canonical(parent, error);
    std::string why = error ? error.message() : WhyNotIn(resolved, parent == paths.root);
    std::string path = resolved / kTemplate;
    if (why.empty() && mkdtemp(path.data()) == nullptr) {
      why = std::generic_category().message(errno);
    }
    if (why.empty()) {
      return SocketFolder(path, OpenLocked(path));
    }
    all += (all.empty() ? "" : "; ") + parent.string() + ": " + why;
  }
  return absl::UnavailableError("cannot make a folder for the sockets of the run's processes (" +
                                all + "): name a folder for it in the variable TMPDIR");
}

std::vector<std::filesystem::path> SocketFolder::Parents(const RunPaths& paths) {
  std::vector<std::filesystem::path> parents = {"/tmp", paths.root};
  const char* const wanted = std::getenv("TMPDIR");
  if (wanted != nullptr && *wanted == '/') {
    parents.emplace(parents.begin(), wanted);
  }
  return parents;
}

SocketFolder::~SocketFolder() {
  if (lock_ >= 0) {
    RemoveAndClose(path_, lock_);
  }
}

SocketFolder::SocketFolder(SocketFolder&& other) noexcept
    : path_(std::move(other.path_)), lock_(std::exchange(other.lock_, -1)) {}

SocketFolder& SocketFolder::operator=(SocketFolder&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(lock_, other.lock_);
  return *this;
}

std::string SocketFolder::address() const {
  return std::string(kUnix) + (path_ / kController).string();
}

void SocketFolder::AddFlags(controller::SlotId id,
                            std::uint64_t generation,
                            std::vector<std::string>& flags) const {
  const auto at = [&](std::string_view letter) {
    return std::string(kUnix) + (path_ / letter).string() + std::to_string(id.slot) + "." +
           std::to_string(generation);
  };
  if (id.role == controller::Role::kParameterServer) {
    flags.insert(flags.end(), {"--listen", at("p"), "--replication-listen", at("r")});
  } else if (id.role == controller::Role::kDataServer) {
    flags.insert(flags.end(), {"--listen", at("d")});
  }  // workers serve nobody
}

}  // namespace adamant::local
