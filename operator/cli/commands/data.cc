#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "operator/cli/commands/commands.h"
#include "operator/cli/console/arguments.h"
#include "operator/cli/console/exit_codes.h"
#include "operator/cli/console/output_file.h"
#include "operator/cli/console/print_error.h"
#include "services/common/dataset/digits.h"
#include "services/common/dataset/mnist.h"

namespace adamant::cli {
namespace {

constexpr char kExamples[] = R"(Examples:
  adamant data digits --out data/digits
      Draws 60,000 + 10,000 handwritten-looking digits (IDX files, gzip): those of a manifest with
      train: {digits: {seed: 1, examples: 60000}}, validation: {digits: {seed: 2, examples: 10000}}.
  adamant data mnist --out data/mnist
      Fetches MNIST and checks it against the published checksums.

A manifest names the files under spec.data.train.idx and spec.data.validation.idx.)";

int Report(const absl::Status& status, const std::string& folder) {
  if (status.ok()) {
    std::printf(
        "%s: train-images-idx3-ubyte.gz, train-labels-idx1-ubyte.gz, "
        "t10k-images-idx3-ubyte.gz, t10k-labels-idx1-ubyte.gz\n",
        folder.c_str());
    return kOk;
  }
  PrintError(std::string(status.message()));
  return kCannotRun;
}

int CheckFolder(const std::string& folder) {
  const absl::Status status = CheckOutputFolder(folder);
  if (!status.ok()) {
    PrintError("--out " + std::string(status.message()));
  }
  return status.ok() ? kOk : kBadInput;
}

struct DigitsFlags {
  std::string folder;
  dataset::DigitsFilesOptions options;
  bool has_validation_seed = false;
};

int Digits(DigitsFlags flags) {
  if (!flags.has_validation_seed) {
    flags.options.validation_seed = flags.options.seed + 1;
  }
  if (flags.options.validation_seed == flags.options.seed) {
    PrintError(
        "--seed and --validation-seed are the same: the validation set would be digits of the "
        "training set");
    return kBadInput;
  }
  if (const int code = CheckFolder(flags.folder); code != kOk) {
    return code;
  }
  const bool terminal = isatty(STDERR_FILENO) != 0;
  const absl::Status status = dataset::WriteDigits(
      flags.folder, flags.options, [&](std::uint64_t done, std::uint64_t total) {
        if (terminal) {
          std::fprintf(stderr,
                       "\r%llu of %llu digits%s",
                       static_cast<unsigned long long>(done),
                       static_cast<unsigned long long>(total),
                       done == total ? "\n" : "");
        }
      });
  return Report(status, flags.folder);
}

struct MnistFlags {
  std::string folder;
  dataset::MnistOptions options;
};

int Mnist(const MnistFlags& flags) {
  if (const int code = CheckFolder(flags.folder); code != kOk) {
    return code;
  }
  absl::Status status =
      dataset::FetchMnist(flags.folder, flags.options, [](const std::string& file) {
        std::printf("fetching %s\n", file.c_str());
      });
  if (absl::IsUnavailable(status)) {
    status = absl::UnavailableError(std::string(status.message()) +
                                    "; a folder with the files elsewhere is named by --mirror URL, "
                                    "as file:///media/mnist; without a network, adamant data "
                                    "digits draws a set like it");
  }
  return Report(status, flags.folder);
}

}  // namespace

void AddData(CLI::App& app, int& exit_code) {
  CLI::App& command = *app.add_subcommand("data", "Make or fetch data sets");
  command.require_subcommand(1);
  command.footer(kExamples);

  CLI::App& digits = *command.add_subcommand("digits", "Draw handwritten-looking digits");
  const auto digits_flags = std::make_shared<DigitsFlags>();
  AddFolder(digits, "--out", digits_flags->folder, "Folder for the files")->required();
  digits.add_option("--train", digits_flags->options.train_examples, "Training examples")
      ->check(WholeNumber(1, dataset::kMostDigits))
      ->capture_default_str();
  digits
      .add_option("--validation", digits_flags->options.validation_examples, "Validation examples")
      ->check(WholeNumber(1, dataset::kMostDigits))
      ->capture_default_str();
  digits
      .add_option("--seed",
                  digits_flags->options.seed,
                  "Of the training set; the same digits as a manifest's digits: {seed: …}")
      ->check(WholeNumber(0, dataset::kMostDigitsSeed))
      ->capture_default_str();
  const CLI::Option* validation_seed =
      digits
          .add_option("--validation-seed",
                      digits_flags->options.validation_seed,
                      "Of the validation set [one more than --seed]")
          ->check(WholeNumber(0, dataset::kMostDigitsSeed));
  digits.callback([digits_flags, validation_seed, &exit_code] {
    digits_flags->has_validation_seed = validation_seed->count() > 0;
    exit_code = Digits(*digits_flags);
  });

  CLI::App& mnist = *command.add_subcommand("mnist", "Fetch MNIST from the network, by curl");
  const auto mnist_flags = std::make_shared<MnistFlags>();
  AddFolder(mnist, "--out", mnist_flags->folder, "Folder for the files")->required();
  mnist.add_option("--mirror", mnist_flags->options.mirrors, "URL of a folder with the files");
  mnist.callback([mnist_flags, &exit_code] { exit_code = Mnist(*mnist_flags); });
}

}  // namespace adamant::cli
