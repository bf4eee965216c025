#include "services/common/job/data_problems.h"

#include <cstddef>
#include <filesystem>
#include <system_error>

namespace adamant::job {
namespace {

void Replace(const std::string& from, const std::string& to, std::string& text) {
  for (std::size_t at = text.find(from); at != std::string::npos;
       at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

}  // namespace

std::string MissingFile(const std::string& path, const std::string& name) {
  std::error_code error;
  if (std::filesystem::is_regular_file(path, error)) {
    return "";
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return "cannot read " + name + ": " + error.message();
  }
  return std::filesystem::exists(path, error) ? name + " is not a regular file"
                                              : "there is no file " + name;
}

DataProblem ProblemOf(const absl::Status& error, const IdxSource& source) {
  std::string message(error.message());
  const bool of_labels = message.starts_with(source.paths.labels);
  Replace(source.paths.images, source.names.images, message);
  if (source.paths.labels != source.names.labels) {
    Replace(source.paths.labels, source.names.labels, message);
  }
  return {.field = of_labels ? source.fields.labels : source.fields.images,
          .message = std::move(message)};
}

std::string Misfit(const std::string& what, const Shape& image, const Shape& input) {
  return image == input
             ? ""
             : what + " " + ToString(image) + ", but the net's input is " + ToString(input);
}

std::string Misfit(const IdxSource& source, const dataset::IdxInfo& info, const Shape& input) {
  return Misfit(
      source.names.images + " has images of", {info.channels, info.height, info.width}, input);
}

}  // namespace adamant::job
