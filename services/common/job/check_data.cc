#include <cstdint>
#include <string>
#include <system_error>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/dataset/idx.h"
#include "services/common/job/schema.h"
#include "services/common/job/semantics.h"

namespace adamant::job {
namespace {

/// Checks one data source.
class SourceChecker {
 public:
  SourceChecker(const v1::DataSource& source,
                std::string path,
                const model::Graph* graph,
                const Locations& given,
                Problems& problems)
      : source_(source),
        path_(std::move(path)),
        graph_(graph),
        given_(given),
        problems_(problems) {}

  /// Returns the number of examples if it can be told.
  std::optional<std::int64_t> Check() {
    if (source_.has_digits()) {
      return CheckDigits();
    }
    return source_.has_idx() && CheckExist() ? CheckFiles() : std::nullopt;
  }

 private:
  std::optional<std::int64_t> CheckDigits() {
    constexpr std::int64_t kDigits = 10;
    CheckImages("digits", "digits are", {1, 28, 28});
    if (graph_ != nullptr && graph_->classes < kDigits) {
      Report(
          "digits",
          "there are 10 digits, but the net has " + std::to_string(graph_->classes) + " classes");
    }
    return source_.digits().has_examples() ? std::optional(source_.digits().examples())
                                           : std::nullopt;
  }

  /// Whether both files are given and there; reports each that is not there.
  bool CheckExist() {
    const bool images = CheckExists("idx.images", source_.idx().images());
    const bool labels = CheckExists("idx.labels", source_.idx().labels());
    return images && labels;
  }

  bool CheckExists(const std::string& field, const std::string& file) {
    std::error_code error;
    if (file.empty() || std::filesystem::is_regular_file(file, error)) {
      return !file.empty();
    }
    Report(field,
           std::filesystem::exists(file, error) ? file + " is not a regular file"
                                                : "there is no file " + file);
    return false;
  }

  std::optional<std::int64_t> CheckFiles() {
    const v1::IdxFiles& files = source_.idx();
    dataset::IdxLimits limits;
    if (graph_ != nullptr) {
      limits.classes = static_cast<std::uint32_t>(graph_->classes);  // at most 2^20
    }
    const absl::StatusOr<dataset::IdxInfo> info =
        dataset::CheckIdx({files.images(), files.labels()}, limits);
    if (!info.ok()) {
      const std::string message(info.status().message());
      const bool of_labels = message.compare(0, files.labels().size(), files.labels()) == 0;
      Report(of_labels ? "idx.labels" : "idx.images", message);
      return std::nullopt;
    }
    CheckImages("idx.images",
                files.images() + " has images of",
                {info->channels, info->height, info->width});
    return static_cast<std::int64_t>(info->examples);
  }

  void CheckImages(const std::string& field, const std::string& what, const Shape& image) {
    if (graph_ != nullptr && graph_->input != image) {
      Report(field,
             what + " " + ToString(image) + ", but the net's input is " + ToString(graph_->input));
    }
  }

  void Report(const std::string& field, std::string message) {
    const std::string path = FieldPath(path_, field);
    problems_.Add(Locate(given_, path), path, std::move(message));
  }

  const v1::DataSource& source_;
  const std::string path_;
  const model::Graph* const graph_;
  const Locations& given_;
  Problems& problems_;
};

/// Accuracy on examples that were trained on means nothing.
void CheckDisjoint(const v1::Data& data, const Locations& given, Problems& problems) {
  const v1::DataSource& train = data.train();
  const v1::DataSource& validation = data.validation();
  const auto report = [&](const std::string& path, const std::string& what) {
    problems.Add(Locate(given, path),
                 path,
                 "the same " + what + " as for training; validate on other examples");
  };
  if (train.has_digits() && validation.has_digits() && train.digits().has_seed() &&
      validation.digits().has_seed() && train.digits().seed() == validation.digits().seed()) {
    report("spec.data.validation.digits.seed", "seed");
  }
  if (train.has_idx() && validation.has_idx() && train.idx().has_images() &&
      train.idx().images() == validation.idx().images()) {
    report("spec.data.validation.idx.images", "file");
  }
}

void ResolvePath(const std::filesystem::path& folder, std::string& file) {
  file = (folder / file).lexically_normal().string();
}

void ResolvePaths(const std::filesystem::path& folder, v1::DataSource& source) {
  if (source.idx().has_images()) {
    ResolvePath(folder, *source.mutable_idx()->mutable_images());
  }
  if (source.idx().has_labels()) {
    ResolvePath(folder, *source.mutable_idx()->mutable_labels());
  }
}

}  // namespace

void ResolvePaths(v1::JobSpec& spec, const std::filesystem::path& folder) {
  if (spec.data().has_train()) {
    ResolvePaths(folder, *spec.mutable_data()->mutable_train());
  }
  if (spec.data().has_validation()) {
    ResolvePaths(folder, *spec.mutable_data()->mutable_validation());
  }
}

std::optional<std::int64_t> CheckData(const v1::JobSpec& spec,
                                      const model::Graph* graph,
                                      const Locations& given,
                                      Problems& problems) {
  const v1::Data& data = spec.data();
  const std::optional<std::int64_t> examples =
      SourceChecker(data.train(), "spec.data.train", graph, given, problems).Check();
  SourceChecker(data.validation(), "spec.data.validation", graph, given, problems).Check();
  CheckDisjoint(data, given, problems);
  return examples;
}

}  // namespace adamant::job
