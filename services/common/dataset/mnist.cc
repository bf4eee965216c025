#include "services/common/dataset/mnist.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "services/common/base/sha256.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"

namespace adamant::dataset {
namespace {

constexpr std::uint64_t kMaxFileBytes = std::uint64_t{64} << 20;

struct MnistFile {
  const char* name;
  const char* sha256;
};

// As the files were published.
constexpr std::array<MnistFile, 4> kFiles = {{
    {"train-images-idx3-ubyte.gz",
     "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609"},
    {"train-labels-idx1-ubyte.gz",
     "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"},
    {"t10k-images-idx3-ubyte.gz",
     "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6"},
    {"t10k-labels-idx1-ubyte.gz",
     "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"},
}};

// The last line of what curl wrote to its standard error.
std::string LastLine(const std::filesystem::path& path) {
  std::string text = ReadFile(path, 1u << 16).value_or("");
  while (!text.empty() && text.back() == '\n') {
    text.pop_back();
  }
  const std::size_t newline = text.rfind('\n');
  return newline == std::string::npos ? text : text.substr(newline + 1);
}

// Runs `curl` to fetch `url` into `target`.
absl::Status RunCurl(const std::string& url, const std::filesystem::path& target) {
  const std::filesystem::path messages = target.string() + ".log";
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(
      &actions, STDERR_FILENO, messages.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  std::array<std::string, 14> words = {"curl",
                                       "--fail",
                                       "--location",
                                       "--silent",
                                       "--show-error",
                                       "--connect-timeout",
                                       "20",
                                       "--max-time",
                                       "600",
                                       "--max-filesize",
                                       std::to_string(kMaxFileBytes),
                                       "--output",
                                       target.string(),
                                       url};
  std::array<char*, words.size() + 1> arguments = {};
  std::transform(
      words.begin(), words.end(), arguments.begin(), [](std::string& word) { return word.data(); });
  pid_t child = 0;
  const int error = posix_spawnp(&child, "curl", &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) {
    return absl::FailedPreconditionError(
        "cannot run curl, which fetches the files: " + std::generic_category().message(error) +
        "; install it (apt-get install curl)");
  }
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  const std::string message = LastLine(messages);
  unlink(messages.c_str());
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
    return absl::OkStatus();
  }
  return absl::UnavailableError("cannot fetch " + url + ": " +
                                (message.empty() ? "curl failed" : message));
}

// The content of the file at `path`, if it is what was published.
absl::StatusOr<std::string> ReadPublished(const std::filesystem::path& path,
                                          const MnistFile& file) {
  ADAMANT_ASSIGN_OR_RETURN(std::string content, ReadFile(path, kMaxFileBytes));
  const std::string found = Sha256(content);
  if (found == file.sha256) {
    return content;
  }
  return absl::DataLossError(path.string() + ": expected SHA-256 " + file.sha256 + ", found " +
                             found);
}

absl::Status FetchFrom(const std::string& url,
                       const std::filesystem::path& path,
                       const MnistFile& file) {
  const std::filesystem::path fetched = path.string() + ".fetched";
  absl::Status status = RunCurl(url, fetched);
  if (status.ok()) {
    const absl::StatusOr<std::string> content = ReadPublished(fetched, file);
    status = content.ok() ? WriteFile(path, *content) : content.status();
  }
  std::error_code ignored;
  std::filesystem::remove(fetched, ignored);
  return status;
}

}  // namespace

absl::Status FetchMnist(const std::string& folder,
                        const MnistOptions& options,
                        const MnistProgress& progress) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    return SystemError(error.value(), "cannot create the folder", folder);
  }
  for (const MnistFile& file : kFiles) {
    const std::filesystem::path path = std::filesystem::path(folder) / file.name;
    if (ReadPublished(path, file).ok()) {
      continue;
    }
    if (progress) {
      progress(file.name);
    }
    absl::Status status = absl::InvalidArgumentError("no mirror of MNIST is given");
    for (const std::string& mirror : options.mirrors) {
      const bool has_slash = mirror.ends_with('/');
      status = FetchFrom(mirror + (has_slash ? "" : "/") + file.name, path, file);
      if (status.ok() || absl::IsFailedPrecondition(status)) {
        break;
      }
    }
    ADAMANT_RETURN_IF_ERROR(status);
  }
  return absl::OkStatus();
}

}  // namespace adamant::dataset
