#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>

#include "proto/adamant/v1/job.pb.h"
#include "services/common/dataset/idx.h"
#include "services/common/job/data_problems.h"
#include "services/common/job/semantics.h"
#include "services/common/job/yaml/schema.h"

namespace adamant::job {
namespace {

/// Whether a path from a volume's root leads to something on the volume.
bool StaysWithin(const std::filesystem::path& path) {
  return path.is_relative() && std::find(path.begin(), path.end(), "..") == path.end();
}

constexpr char kOnVolume[] =
    " leads out of the volume (allowed: a path from its root, without .. and / at its beginning)";

/// Checks one data source.
class SourceChecker {
 public:
  SourceChecker(const v1::DataSource& source,
                std::string path,
                DataPlace place,
                const model::Graph* graph,
                const Locations& given,
                Problems& problems)
      : source_(source),
        path_(std::move(path)),
        place_(place),
        graph_(graph),
        given_(given),
        problems_(problems) {}

  /// Returns the number of examples if it can be told.
  std::optional<std::int64_t> Check() {
    if (source_.has_digits()) {
      return CheckDigits();
    }
    if (!source_.has_idx()) {
      return std::nullopt;
    }
    if (OnClaim() || place_ == DataPlace::kElsewhere) {
      CheckRemotePath("idx.images", source_.idx().images());
      CheckRemotePath("idx.labels", source_.idx().labels());
      return std::nullopt;
    }
    return place_ != DataPlace::kHereUnread && CheckExist() ? CheckFiles() : std::nullopt;
  }

 private:
  std::optional<std::int64_t> CheckDigits() {
    constexpr std::int64_t kDigits = 10;
    if (graph_ != nullptr) {
      ReportAny("digits", Misfit("digits are", {1, 28, 28}, graph_->input));
    }
    if (graph_ != nullptr && graph_->classes < kDigits) {
      Report("digits",
             "there are 10 digits, but the net has " + std::to_string(graph_->classes) +
                 (graph_->classes == 1 ? " class" : " classes"));
    }
    return source_.digits().has_examples() ? std::optional(source_.digits().examples())
                                           : std::nullopt;
  }

  /// Whether the manifest gives a claim, right or wrong.
  [[nodiscard]] bool OnClaim() const { return given_.contains(FieldPath(path_, "idx.claim")); }

  /// Checks the path of a file that cannot be looked at.
  void CheckRemotePath(const std::string& field, const std::string& file) {
    if (file.empty()) {
      return;
    }
    if (source_.idx().has_claim() && !StaysWithin(file)) {
      Report(field, Quote(file) + kOnVolume);
    } else if (!OnClaim() && std::filesystem::path(file).is_relative()) {
      Report(field,
             Quote(file) +
                 " starts at the manifest's folder, which a cluster does not have "
                 "(allowed: an absolute path in the data servers' containers, or a path "
                 "on a claim)");
    }
  }

  /// Whether both files are given and there; reports each that is not there.
  bool CheckExist() {
    const bool images = CheckExists("idx.images", source_.idx().images());
    const bool labels = CheckExists("idx.labels", source_.idx().labels());
    return images && labels;
  }

  bool CheckExists(const std::string& field, const std::string& file) {
    if (file.empty()) {
      return false;
    }
    const std::string problem = MissingFile(file, file);
    if (!problem.empty()) {
      Report(field, problem);
    }
    return problem.empty();
  }

  std::optional<std::int64_t> CheckFiles() {
    const dataset::IdxPaths files{.images = source_.idx().images(),
                                  .labels = source_.idx().labels()};
    const IdxSource source{
        .paths = files, .names = files, .fields = {.images = "idx.images", .labels = "idx.labels"}};
    dataset::IdxLimits limits;
    if (graph_ != nullptr) {
      limits.classes = static_cast<std::uint32_t>(graph_->classes);  // at most 2^20
    }
    const absl::StatusOr<dataset::IdxInfo> info = place_ == DataPlace::kHereWhole
                                                      ? dataset::VerifyIdx(files, limits)
                                                      : dataset::CheckIdx(files, limits);
    if (!info.ok()) {
      const DataProblem problem = ProblemOf(info.status(), source);
      Report(problem.field, problem.message);
      return std::nullopt;
    }
    if (graph_ != nullptr) {
      ReportAny("idx.images", Misfit(source, *info, graph_->input));
    }
    return static_cast<std::int64_t>(info->examples);
  }

  void ReportAny(const std::string& field, const std::string& problem) {
    if (!problem.empty()) {
      Report(field, problem);
    }
  }

  void Report(const std::string& field, std::string message) {
    const std::string path = FieldPath(path_, field);
    problems_.Add(Locate(given_, path), path, std::move(message));
  }

  const v1::DataSource& source_;
  const std::string path_;
  const DataPlace place_;
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
      train.idx().images() == validation.idx().images() &&
      train.idx().claim() == validation.idx().claim()) {
    report("spec.data.validation.idx.images", "file");
  }
  const std::string& url = train.download().images().url();
  if (!url.empty() && url == validation.download().images().url()) {
    report("spec.data.validation.download.images.url", "file");
  }
}

void ResolvePath(const std::filesystem::path& folder, std::string& file) {
  file = (folder / file).lexically_normal().string();
}

void ResolvePaths(const std::filesystem::path& folder, v1::DataSource& source) {
  if (source.idx().has_claim()) {
    return;
  }
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
  for (v1::StoredModel* stored :
       {spec.start_from().has_checkpoint() ? spec.mutable_start_from()->mutable_checkpoint()
                                           : nullptr,
        spec.start_from().has_weights() ? spec.mutable_start_from()->mutable_weights() : nullptr}) {
    if (stored != nullptr && stored->has_path()) {
      ResolvePath(folder, *stored->mutable_path());
    }
  }
}

std::optional<std::int64_t> CheckData(const v1::JobSpec& spec,
                                      DataPlace place,
                                      const model::Graph* graph,
                                      const Locations& given,
                                      Problems& problems) {
  const v1::Data& data = spec.data();
  const DataPlace train = place == DataPlace::kHereValidation ? DataPlace::kHereUnread : place;
  const std::optional<std::int64_t> examples =
      SourceChecker(data.train(), "spec.data.train", train, graph, given, problems).Check();
  SourceChecker(data.validation(), "spec.data.validation", place, graph, given, problems).Check();
  CheckDisjoint(data, given, problems);
  if (!StaysWithin(spec.output().path())) {
    problems.Add(Locate(given, "spec.output.path"),
                 "spec.output.path",
                 Quote(spec.output().path()) + kOnVolume);
  }
  return examples;
}

}  // namespace adamant::job
