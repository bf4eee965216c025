#include "operator/local/run_folder/run_paths.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <ctime>
#include <system_error>
#include <utility>
#include <vector>

#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/base/text/utf8.h"
#include "services/common/storage/rocksdb/file_kinds.h"
#include "services/common/storage/rocksdb/set_aside.h"

namespace adamant::local {
namespace {

// Whatever it is, also a link that leads nowhere.
bool IsThere(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(std::filesystem::symlink_status(path, error));
}

std::string HowToPutBack(const RunPaths& paths) {
  return IsThere(paths.started())
             ? "what it was started with last puts it back: cp " + paths.started().string() + " " +
                   paths.job().string()
             : "put the manifest that it was started with there as " + paths.job().string();
}

// The folders that a new run needs and that are not there, innermost first.
std::vector<std::filesystem::path> MissingFolders(const RunPaths& paths) {
  std::vector<std::filesystem::path> missing = {paths.logs(), paths.data()};
  std::error_code error;
  for (std::filesystem::path folder = std::filesystem::absolute(paths.root, error);
       folder.has_relative_path() && !std::filesystem::exists(folder, error);
       folder = folder.parent_path()) {
    missing.push_back(folder);
  }
  return missing;
}

absl::Status FillRunFolder(const RunPaths& paths, std::string_view job) {
  for (const std::filesystem::path& folder : {paths.root, paths.logs(), paths.data()}) {
    ADAMANT_RETURN_IF_ERROR(MakeFolder(folder));
  }
  return WriteFileAtomically(paths.job(), job);
}

// What is not there can be made, or is missed by whoever needs it; links lead out of the run.
absl::Status CheckWritable(const std::filesystem::path& path) {
  struct stat about {};
  if (lstat(path.c_str(), &about) != 0 || S_ISLNK(about.st_mode)) {
    return absl::OkStatus();
  }
  const int wanted = R_OK | W_OK | (S_ISDIR(about.st_mode) ? X_OK : 0);
  return faccessat(AT_FDCWD, path.c_str(), wanted, AT_EACCESS) == 0 || errno == ENOENT
             ? absl::OkStatus()
             : SystemError(errno, "cannot write to", path);
}

absl::Status CheckAllIsWritable(const std::filesystem::path& folder) {
  ADAMANT_RETURN_IF_ERROR(CheckWritable(folder));
  std::error_code error;
  std::filesystem::recursive_directory_iterator entry(folder, error);
  for (; !error && entry != std::filesystem::recursive_directory_iterator();
       entry.increment(error)) {
    if (entry->path().extension() == ".damaged") {
      entry.disable_recursion_pending();  // nobody needs it
    } else {
      ADAMANT_RETURN_IF_ERROR(CheckWritable(entry->path()));
    }
  }
  return absl::OkStatus();
}

absl::Status WithAdvice(const absl::Status& status, std::string_view advice) {
  return status.ok() ? status
                     : absl::Status(status.code(),
                                    std::string(status.message()) + "; " + std::string(advice));
}

// What has failed, all in one message, so that all can be put right at once.
absl::Status Strays(const std::vector<absl::Status>& checks) {
  std::string all;
  int strays = 0;
  for (const absl::Status& check : checks) {
    if (!check.ok()) {
      all += (++strays > 1 ? "; " : "") + std::string(check.message());
    }
  }
  return strays == 0
             ? absl::OkStatus()
             : absl::DataLossError(all + (strays == 1 ? "; move it" : "; move all of these") +
                                   " away, then resume again");
}

// A controller locks both bytes of the lock file, a reader the second: readers exclude controllers
// and each other, and the first byte tells whether there is a controller.
constexpr off_t kControlByte = 0;
constexpr off_t kReadByte = 1;

// Locks of open files, unlike those of processes, are not lost when another descriptor is closed.
struct flock Range(off_t begin, off_t bytes) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = begin;
  range.l_len = bytes;
  return range;
}

}  // namespace

absl::Status InUse(const RunPaths& paths) {
  return absl::AbortedError(paths.root.string() +
                            " is in use by another adamant; look at it with `adamant status " +
                            paths.root.string() + "`");
}

absl::StatusOr<RunLock> RunLock::Acquire(const RunPaths& paths, Use use) {
  const int descriptor = open(paths.lock().c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    const int error = errno;
    ADAMANT_RETURN_IF_ERROR(
        WithAdvice(storage::CheckIsFile(paths.lock()), "move it away: it is made anew"));
    return SystemError(error, "cannot open", paths.lock());
  }
  struct flock range = use == Use::kControl ? Range(kControlByte, 2) : Range(kReadByte, 1);
  if (fcntl(descriptor, F_OFD_SETLK, &range) != 0) {
    const int error = errno;
    close(descriptor);
    if (error == EAGAIN || error == EACCES) {
      return InUse(paths);
    }
    return SystemError(error, "cannot lock", paths.lock());
  }
  return RunLock(descriptor);
}

absl::StatusOr<bool> RunLock::IsControlled(const RunPaths& paths) {
  const int descriptor =
      open(paths.lock().c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);  // anybody may look
  if (descriptor < 0) {
    const bool nobody = errno == ENOENT || errno == ELOOP;  // a link to itself holds no lock
    return nobody ? absl::StatusOr<bool>(false) : SystemError(errno, "cannot open", paths.lock());
  }
  struct flock range = Range(kControlByte, 1);
  const int result = fcntl(descriptor, F_OFD_GETLK, &range);
  const int error = errno;
  close(descriptor);
  if (result != 0) {
    return SystemError(error, "cannot look at the lock", paths.lock());
  }
  return range.l_type != F_UNLCK;
}

absl::Status RunLock::CheckFree(const RunPaths& paths) {
  ADAMANT_ASSIGN_OR_RETURN(const bool controlled, IsControlled(paths));
  return controlled ? InUse(paths) : absl::OkStatus();
}

RunLock::~RunLock() {
  if (descriptor_ >= 0) {
    close(descriptor_);
  }
}

RunLock::RunLock(RunLock&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}

RunLock& RunLock::operator=(RunLock&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

absl::Status CheckPath(const RunPaths& paths) {
  std::error_code error;
  const std::string path = std::filesystem::absolute(paths.root, error).string();
  return IsUtf8(path) ? absl::OkStatus()
                      : absl::InvalidArgumentError(
                            "the run's folder, " + path +
                            ", has a path that is not UTF-8 text: name another, or rename what is "
                            "above it");
}

absl::Status CreateRunFolder(const RunPaths& paths, std::string_view job) {
  ADAMANT_RETURN_IF_ERROR(CheckPath(paths));
  std::error_code error;
  if (std::filesystem::exists(paths.root, error) &&
      !std::filesystem::is_directory(paths.root, error)) {
    return absl::AlreadyExistsError(paths.root.string() +
                                    " is a file; name a folder that is empty or new");
  }
  if (std::filesystem::exists(paths.root, error) && !std::filesystem::is_empty(paths.root, error) &&
      !error) {
    return absl::AlreadyExistsError(
        paths.root.string() +
        " is not empty; continue the run in it with --resume, or name another folder");
  }
  const std::vector<std::filesystem::path> made = MissingFolders(paths);
  const absl::Status status = FillRunFolder(paths, job);
  if (!status.ok()) {
    for (const std::filesystem::path& folder : made) {
      std::filesystem::remove(folder, error);  // only what is empty
    }
  }
  return status;
}

std::string SetStrangerAside(const std::filesystem::path& data) {
  const absl::Status strange = storage::CheckIsFolder(data);
  if (strange.ok()) {
    return "";
  }
  const absl::Status moved = storage::SetAside(data);
  return std::string(strange.message()) + "; " +
         (moved.ok() ? "it is kept as " + data.string() +
                           ".damaged, and the process begins with an empty folder"
                     : std::string(moved.message()));
}

bool CanBeResumed(const RunPaths& paths) { return CheckHoldsRun(paths).ok(); }

bool HasState(const RunPaths& paths) {
  return IsThere(paths.controller()) || IsThere(paths.controller_copy());
}

absl::Status CheckHoldsRun(const RunPaths& paths) {
  if (std::error_code error; !std::filesystem::is_directory(paths.root, error)) {
    return absl::NotFoundError(paths.root.string() +
                               (IsThere(paths.root)
                                    ? " is no folder; that of a run is wanted"
                                    : " does not exist; the folder of a run is wanted"));
  }
  const absl::Status stray = storage::CheckIsFile(paths.job());
  if (!IsThere(paths.job()) || !stray.ok()) {
    const std::string root = paths.root.string();
    const bool begun = IsThere(paths.started()) || HasState(paths);
    return absl::NotFoundError(
        !stray.ok() ? std::string(stray.message()) + "; move it away; " + HowToPutBack(paths)
        : begun     ? root + " holds a run whose job.yaml is missing; " + HowToPutBack(paths)
                    : root + " holds no run: it has no job.yaml");
  }
  // One that was ended at once has only its folders, and one of an earlier version no started.yaml.
  const bool begun = IsThere(paths.started()) || HasState(paths) ||
                     (IsThere(paths.logs()) && IsThere(paths.data()));
  return begun ? absl::OkStatus()
               : absl::NotFoundError(paths.root.string() +
                                     " holds no run: it has a job.yaml, but no started.yaml. To "
                                     "begin one: adamant train " +
                                     paths.job().string());
}

absl::Status CheckRunFiles(const RunPaths& paths) {
  std::vector<absl::Status> checks;
  for (const std::filesystem::path& file :
       {paths.lock(), paths.started(), paths.events(), paths.metrics(), paths.endpoint()}) {
    checks.push_back(storage::CheckIsFile(file));
  }
  checks.push_back(CheckModelFiles(paths));
  for (const std::filesystem::path& folder : {paths.logs(), paths.checkpoints()}) {
    checks.push_back(storage::CheckIsFolder(folder));
  }
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(paths.logs(), error)) {
    if (entry.path().extension() == ".log") {  // others are not ours
      checks.push_back(storage::CheckIsFile(entry.path()));
    }
  }
  ADAMANT_RETURN_IF_ERROR(Strays(checks));
  return CheckDataFolder(paths);
}

absl::Status CheckDataFolder(const RunPaths& paths) {
  return WithAdvice(storage::CheckIsFolder(paths.data()),
                    "move it away and put the run's own data folder back: what was trained is in "
                    "it");
}

// They are written at the end of links, whether anything is there or not.
absl::Status CheckModelFiles(const RunPaths& paths) {
  ADAMANT_RETURN_IF_ERROR(storage::CheckIsFile(EndOfLinks(paths.safetensors())));
  return storage::CheckIsFile(EndOfLinks(paths.onnx()));
}

absl::Status CheckRunIsWritable(const RunPaths& paths) {
  ADAMANT_RETURN_IF_ERROR(CheckWritable(paths.root));
  for (const std::filesystem::path& folder : {paths.controller(),
                                              paths.controller_copy(),
                                              paths.data(),
                                              paths.logs(),
                                              paths.checkpoints()}) {
    ADAMANT_RETURN_IF_ERROR(CheckAllIsWritable(folder));
  }
  return absl::OkStatus();
}

void RemoveLeftovers(const RunPaths& paths) {
  std::vector<std::filesystem::path> files = {paths.job(),
                                              paths.started(),
                                              paths.plan(),
                                              paths.metrics(),
                                              paths.curve(),
                                              paths.safetensors(),
                                              paths.onnx(),
                                              paths.endpoint()};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(paths.checkpoints(), error)) {
    files.push_back(std::filesystem::path(entry.path()).replace_extension());  // of 7.json.tmp
  }
  for (std::filesystem::path& file : files) {
    file = TemporaryOf(file);
    if (std::filesystem::is_regular_file(std::filesystem::symlink_status(file, error))) {
      std::filesystem::remove(file, error);
    }
  }
}

absl::StatusOr<std::filesystem::path> MakeRunFolder(const std::filesystem::path& parent,
                                                    const std::string& job) {
  ADAMANT_RETURN_IF_ERROR(MakeFolder(parent));
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  char stamp[32];
  std::strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &local);
  const std::filesystem::path first = parent / (job + "-" + stamp);
  std::filesystem::path name = first;
  for (int i = 2; mkdir(name.c_str(), 0777) != 0; ++i) {
    if (errno != EEXIST) {
      return SystemError(errno, "cannot create", name);
    }
    name = first;
    name += "-" + std::to_string(i);
  }
  return name;
}

}  // namespace adamant::local
