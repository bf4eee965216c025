#include <array>
#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/job/idx_header.h"
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
    return source_.has_idx() ? CheckIdx() : std::nullopt;
  }

 private:
  static constexpr std::int64_t kDigits = 10;

  std::optional<std::int64_t> CheckDigits() {
    const Shape digit = {1, 28, 28};
    if (graph_ != nullptr && graph_->input != digit) {
      Report(
          "digits",
          "digits are " + ToString(digit) + ", but the net's input is " + ToString(graph_->input));
    }
    if (graph_ != nullptr && graph_->classes < kDigits) {
      Report(
          "digits",
          "there are 10 digits, but the net has " + std::to_string(graph_->classes) + " classes");
    }
    return source_.digits().has_examples() ? std::optional(source_.digits().examples())
                                           : std::nullopt;
  }

  std::optional<std::int64_t> CheckIdx() {
    const v1::IdxFiles& files = source_.idx();
    const std::optional<Shape> images = Extents("idx.images", files.images());
    const std::optional<Shape> labels = Extents("idx.labels", files.labels());
    if (images) {
      CheckImages(*images);
    }
    if (labels) {
      CheckLabels(*labels);
    }
    if (images && labels && images->front() != labels->front()) {
      Report("idx.labels",
             files.labels() + " has " + std::to_string(labels->front()) + " labels, but " +
                 files.images() + " has " + std::to_string(images->front()) + " images");
    }
    return images ? std::optional(images->front()) : std::nullopt;
  }

  std::optional<Shape> Extents(const std::string& field, const std::string& file) {
    if (file.empty()) {
      return std::nullopt;
    }
    absl::StatusOr<Shape> extents = ReadIdxExtents(file);
    if (!extents.ok()) {
      Report(field, file + ": " + std::string(extents.status().message()));
      return std::nullopt;
    }
    return *std::move(extents);
  }

  void CheckImages(const Shape& extents) {
    const std::string& file = source_.idx().images();
    if (extents.size() < 3) {
      Report("idx.images",
             file + " holds " + ToString(extents) +
                 " (allowed: examples x height x width, or examples x channels x height x width)");
      return;
    }
    Shape image(extents.begin() + 1, extents.end());
    if (image.size() == 2) {
      image.insert(image.begin(), 1);
    }
    if (graph_ != nullptr && graph_->input != image) {
      Report("idx.images",
             file + " has images of " + ToString(image) + ", but the net's input is " +
                 ToString(graph_->input));
    }
  }

  void CheckLabels(const Shape& extents) {
    const std::string& file = source_.idx().labels();
    if (extents.size() != 1) {
      Report("idx.labels", file + " holds " + ToString(extents) + " (allowed: a list of labels)");
      return;
    }
    const absl::StatusOr<int> largest = LargestLabel(file, extents.front());
    if (!largest.ok()) {
      Report("idx.labels", file + ": " + std::string(largest.status().message()));
    } else if (graph_ != nullptr && *largest >= graph_->classes) {
      Report("idx.labels",
             file + " has a label " + std::to_string(*largest) + ", but the net has " +
                 std::to_string(graph_->classes) + " classes (allowed: 0 to " +
                 std::to_string(graph_->classes - 1) + ")");
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

}  // namespace

void ResolvePaths(v1::JobSpec& spec, const std::filesystem::path& folder) {
  const auto resolve = [&](std::string& file) {
    if (!file.empty()) {
      file = (folder / file).lexically_normal().string();
    }
  };
  if (!spec.has_data()) {
    return;
  }
  for (v1::DataSource* source :
       {spec.mutable_data()->mutable_train(), spec.mutable_data()->mutable_validation()}) {
    if (source->has_idx()) {
      if (source->idx().has_images()) {
        resolve(*source->mutable_idx()->mutable_images());
      }
      if (source->idx().has_labels()) {
        resolve(*source->mutable_idx()->mutable_labels());
      }
    }
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
