#include "operator/cli/commands/display.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "operator/cli/console/arguments.h"
#include "operator/cli/console/status_view.h"
#include "operator/cli/console/text.h"
#include "operator/cli/warnings/expectation.h"
#include "operator/local/history/record.h"
#include "operator/local/run_folder/run_paths.h"
#include "services/common/base/counted.h"
#include "services/common/base/system/files.h"

namespace adamant::cli {
namespace {

using controller::EndKind;
using controller::EpochResult;
using controller::JobReport;
using controller::Note;
using controller::Phase;

// Of buckets that lost updates each has a note, and all together one that is no member's.
bool IsWorthSaying(const Note& note) {
  const Note::Kind kind = note.kind;
  return kind == Note::Kind::kLost || kind == Note::Kind::kRestarting ||
         (kind == Note::Kind::kRestored && !note.member.has_value()) ||
         kind == Note::Kind::kAlarm || kind == Note::Kind::kFailure ||
         kind == Note::Kind::kDiverged || kind == Note::Kind::kWentBack;
}

constexpr double kLeastShown = 0.05;  // seconds, with one digit

// The others are of how fast a job is.
bool BearsOnModel(const std::string& warning) {
  return warning.starts_with("spec.") &&
         warning.find("with one worker it is the same") == std::string::npos &&
         !warning.starts_with("spec.distribution.threadsPerWorker:") &&
         !warning.starts_with("spec.distribution.shareEvery:") &&
         !warning.starts_with("spec.distribution.parameterServers.");
}

// A job that has gone back does so again, and lowers its rate by itself.
std::string AtWhichRate(EndKind end, const local::RunPaths& paths) {
  if (end == EndKind::kDiverged) {
    return " --accept-changes";
  }
  return end == EndKind::kDivergedAgain
             ? " (at half the learning rate; or write a lower one into " + paths.job().string() +
                   " and add --accept-changes)"
             : "";
}

// A deadline that is over is to be raised first: all the time that the job has run counts. What
// found no room needs some.
std::string WhatFirst(const JobReport& report, const local::RunPaths& paths) {
  const std::string room = WhatMakesRoom(report.message);
  if (!room.empty() && report.message.find(room) == std::string::npos) {
    return room + ", then ";
  }
  if (report.message.find("where a file belongs") != std::string::npos) {
    return "move it away, then ";
  }
  if (report.end == EndKind::kDiverged) {
    return "write a lower spec.optimiser.rate into " + paths.job().string() + ", then ";
  }
  return report.over_deadline.empty() ? ""
                                      : "raise " + report.over_deadline + " in " +
                                            paths.job().string() + " first, or delete it; then ";
}

// Of a job whose buckets are ready, and which does not train yet.
std::string WhoIsMissing(const JobReport& report) {
  std::string first;
  std::size_t others = 0;
  for (const JobReport::MemberReport& member : report.members) {
    if (member.state != "Running" && first.empty()) {
      first = controller::ToString(member.id);
    } else if (member.state != "Running") {
      ++others;
    }
  }
  return first.empty() ? "the data"
                       : first + (others == 0 ? "" : " and " + Counted(others, "other"));
}

// Lines for people; the bar adds to it.
class PlainDisplay : public Display {
 public:
  void OnOpening(const Opening& opening) override {
    Say(opening.job + ": " + opening.summary);
    Say("run directory: " + opening.run_folder);
    if (!opening.speed.empty()) {
      Say("speed: " + opening.speed);
    }
    epoch_completion_ = opening.epoch_completion;
    crowd_ = opening.crowd;
  }

  void OnNote(const Note& note) override {
    if (note.kind == Note::Kind::kWarning) {
      Clear();
      std::fflush(stdout);
      PrintWarnings({note.text});
      warnings_.push_back(note.text);
    } else if (IsWorthSaying(note)) {
      Say(InLines(note.text));
      told_ = note.text;
    }
  }

  void OnEpoch(const EpochResult& result) override {
    evaluation_seconds_ = result.evaluation_seconds;
    Say(EpochLine(result, epochs_));
    next_line_ = std::chrono::steady_clock::now() + kLineInterval;
  }

  void OnProgress(const JobReport& report) override {
    epochs_ = report.epochs;
    const auto now = std::chrono::steady_clock::now();
    if (report.phase == Phase::kRunning && now >= next_line_) {
      next_line_ = now + kLineInterval;
      Say(ProgressLine(report));
    }
    if (report.phase != Phase::kStarting) {
      next_starting_line_ = now + kStartingInterval;
    }
    TellWait(report);
    const std::string starting = StartingText(report);
    if (!starting.empty() && now >= next_starting_line_) {
      next_starting_line_ = now + kStartingInterval;
      Say("starting: " + starting);
    }
  }

  void OnEnding(const Ending& ending) override {
    const local::RunPaths paths(ending.run_folder);
    const JobReport& report = ending.report;
    if (report.phase == Phase::kSucceeded) {
      Say(Text("top-1 %.2f%% on the validation data after %llu %s",
               100 * report.accuracy,
               Wide(report.epoch),
               report.epoch == 1 ? "epoch" : "epochs"));
      if (!report.message.empty() && report.message != told_) {
        Say(InLines(report.message));
      }
      for (const std::filesystem::path& model : {paths.safetensors(), paths.onnx()}) {
        if (std::error_code error; std::filesystem::exists(model, error)) {
          Say("model: " + model.string());
        }
      }
      RepeatWarnings(report.end);
      return;
    }
    if (report.phase == Phase::kSuspended) {
      Say(StoppedLine(ending));
      return;
    }
    std::fflush(stdout);
    std::fprintf(stderr, "adamant: the job failed: %s\n", InLines(report.message).c_str());
    RepeatWarnings(report.end);
    if (report.end == EndKind::kOutOfRestarts && !crowd_.empty()) {
      std::fprintf(stderr, "%s\n", crowd_.c_str());
    }
    std::fprintf(stderr, "logs: %s\n", paths.logs().c_str());
    std::fprintf(stderr, "%s\n", WhatNext(report, ending.run_folder).c_str());
  }

 protected:
  /// Of what is drawn over and over.
  virtual void Clear() {}

  virtual void Say(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }

  // What a job that starts waits for, each time that it is something else.
  void TellWait(const JobReport& report) {
    if (report.disk_wait.has_value() && !report.message.empty() && report.message != told_) {
      told_ = report.message;
      Say(InLines(told_));
    }
  }

  double evaluation_seconds_ = 0;
  double epoch_completion_ = 1;
  std::string crowd_;
  std::uint64_t epochs_ = 0;  // of the job

 private:
  static constexpr std::chrono::seconds kLineInterval{15};

  // What was told of the manifest at the start may be why.
  void RepeatWarnings(EndKind end) {
    if (!IsPoor(end) && end != EndKind::kWorse) {
      return;
    }
    std::fflush(stdout);
    for (const std::string& warning : warnings_) {
      if (BearsOnModel(warning)) {
        const std::string brief = warning.substr(0, warning.find(';'));
        std::fprintf(stderr, "it was warned of at the start, and may be why: %s\n", brief.c_str());
      }
    }
  }

  std::string told_;  // last
  std::vector<std::string> warnings_;

  static constexpr std::chrono::seconds kStartingInterval{3};
  std::chrono::steady_clock::time_point next_line_ =
      std::chrono::steady_clock::now() + kLineInterval;
  std::chrono::steady_clock::time_point next_starting_line_ =
      std::chrono::steady_clock::now() + kStartingInterval;
};

// A line at the bottom of the terminal that is drawn over and over.
class BarDisplay final : public PlainDisplay {
 public:
  BarDisplay() {
    const char* no_color = std::getenv("NO_COLOR");
    const char* term = std::getenv("TERM");
    colour_ = (no_color == nullptr || *no_color == '\0') &&
              (term == nullptr || std::strcmp(term, "dumb") != 0);
  }
  ~BarDisplay() override { BarDisplay::Clear(); }

  void OnProgress(const JobReport& report) override {
    epochs_ = report.epochs;
    TellWait(report);
    const std::string bar = Bar(report);
    if (bar != shown_) {
      std::printf("\r\033[K%s", bar.c_str());
      std::fflush(stdout);
      shown_ = bar;
    }
  }

  void OnEnding(const Ending& ending) override {
    Clear();
    PlainDisplay::OnEnding(ending);
  }

 private:
  void Say(const std::string& line) override {
    Clear();
    PlainDisplay::Say(line);
  }

  void Clear() override {
    if (!shown_.empty()) {
      std::printf("\r\033[K");
      std::fflush(stdout);
      shown_.clear();
    }
  }

  [[nodiscard]] std::string Bar(const JobReport& report) const {
    const double share =
        report.total_examples == 0
            ? 0
            : std::min(1.0,
                       static_cast<double>(report.counted_examples) /
                           (epoch_completion_ * static_cast<double>(report.total_examples)));
    std::string text = Text("epoch %llu/%llu ", Wide(report.epoch), Wide(report.epochs));
    std::string tail = Text(" %3.0f%%", 100 * share);
    if (report.training_loss > 0) {
      tail += Text("  loss %.4f", report.training_loss);
    }
    if (report.accuracy > 0) {
      tail += Text("  top-1 %.2f%%", 100 * report.accuracy);
    }
    if (report.phase == Phase::kRunning) {
      tail += report.examples_per_second > 0 ? Text("  %.0f/s", report.examples_per_second) : "";
      const double left = SecondsLeft(report, evaluation_seconds_, epoch_completion_);
      tail += left < 0 ? "" : "  ETA " + FormatSeconds(left);
    } else {
      const std::string starting = StartingText(report);
      tail += "  " + RunPhase(std::string(controller::PhaseName(report.phase)), true) +
              (starting.empty() ? "" : ": " + starting);
    }
    const std::size_t used = text.size() + tail.size() + 3;
    const std::size_t width = std::min<std::size_t>(Width() > used ? Width() - used : 0, 30);
    const auto full = static_cast<std::size_t>(std::lround(share * static_cast<double>(width)));
    if (width > 0) {
      text += "[" + Coloured(std::string(full, '=')) + std::string(width - full, ' ') + "]";
    }
    return (text + tail).substr(0, width > 0 ? std::string::npos : Width() - 1);
  }

  [[nodiscard]] std::string Coloured(const std::string& text) const {
    return colour_ ? "\033[32m" + text + "\033[0m" : text;
  }

  static std::size_t Width() {
    winsize size{};
    const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
  }

  bool colour_ = false;
  std::string shown_;
};

class JsonDisplay final : public Display {
 public:
  void OnOpening(const Opening& opening) override {
    Print({{"time", local::TimeStamp()},
           {"event", "start"},
           {"job", opening.job},
           {"run_dir", opening.run_folder}});
  }
  void OnNote(const Note& note) override { Line(local::NoteJson(local::TimeStamp(), note)); }
  void OnEpoch(const EpochResult& result) override {
    Line(local::EpochJson(local::TimeStamp(), result));
  }
  void OnProgress(const JobReport& report) override {
    const auto now = std::chrono::steady_clock::now();
    if (now >= next_progress_) {
      next_progress_ = now + std::chrono::seconds(1);
      Line(local::ProgressJson(local::TimeStamp(), report));
    }
  }
  void OnEnding(const Ending& ending) override {
    const local::RunPaths paths(ending.run_folder);
    nlohmann::ordered_json json = {
        {"time", local::TimeStamp()},
        {"event", "end"},
        {"phase", controller::PhaseName(ending.report.phase)},
        {"epoch", ending.report.epoch},
        {"top1",
         ending.report.accuracy > 0 ? nlohmann::ordered_json(ending.report.accuracy)
                                    : nlohmann::ordered_json()},
        {"restarts", ending.report.restarts},
        {"message", ending.report.message},
        {"run_dir", ending.run_folder},
        {"exit_code", ending.exit_code}};
    if (ending.report.phase == Phase::kSucceeded) {
      json["model"] = {paths.safetensors().string(), paths.onnx().string()};
    }
    Print(json);
  }

 private:
  static void Line(const std::string& line) {
    std::printf("%s\n", line.c_str());
    std::fflush(stdout);
  }
  static void Print(const nlohmann::ordered_json& json) {
    Line(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
  }

  std::chrono::steady_clock::time_point next_progress_{};
};

}  // namespace

void AddOutput(CLI::App& command, Output& output) {
  AddChoice<Output>(command,
                    "--output",
                    output,
                    {{"text", Output::kText}, {"json", Output::kJson}},
                    "For people, or JSON for machines");
}

std::unique_ptr<Display> NewDisplay(Output output) {
  if (output == Output::kJson) {
    return std::make_unique<JsonDisplay>();
  }
  if (isatty(STDOUT_FILENO) != 0) {
    return std::make_unique<BarDisplay>();
  }
  return std::make_unique<PlainDisplay>();
}

std::string StoppedLine(const Ending& ending) {
  return "stopped in epoch " + std::to_string(ending.report.epoch) + "; " +
         HowToGoOn({}, ending.run_folder);
}

// Somebody may have removed or renamed the folder of a run that runs.
std::string HowToGoOn(const JobReport& report, const std::string& run_folder) {
  const local::RunPaths paths(run_folder);
  return local::CanBeResumed(paths)
             ? WhatFirst(report, paths) + "go on with: adamant train --resume " + run_folder +
                   AtWhichRate(report.end, paths)
             : "the folder of the run is not there any more: " + run_folder;
}

std::string EpochLine(const EpochResult& result, std::uint64_t epochs) {
  if (!result.is_validated() && !result.is_measured()) {
    return Text("epoch %llu/%llu  no controller was there: %s counted, not evaluated",
                Wide(result.epoch),
                Wide(epochs),
                Counted(result.counted, "example").c_str());
  }
  const std::string attempt =
      result.attempt > 1 ? Text("attempt %llu  ", Wide(result.attempt)) : "";
  std::string line = Text("epoch %llu/%llu  %s", Wide(result.epoch), Wide(epochs), attempt.c_str());
  const bool has_loss = result.is_measured() && std::isfinite(result.training_loss);
  line += has_loss ? Text("loss %.4f  ", result.training_loss) : "";
  line += Text("top-1 %.2f%%  ", 100 * result.top1);
  line += result.is_measured() ? Text("%.0f examples/s  ", local::ExamplesPerSecond(result)) : "";
  line += FormatSeconds(result.seconds);  // which the rate is of
  if (result.evaluation_seconds >= kLeastShown) {
    line += " + " + FormatSeconds(result.evaluation_seconds) + " evaluation";
  }
  if (result.left > 0) {
    line += Text("  %llu left out", Wide(result.left));
  }
  if (result.retrained > 0) {
    line += Text("  %llu trained again", Wide(result.retrained));
  }
  return line;
}

std::string StartingText(const JobReport& report) {
  std::uint64_t all = 0;
  std::uint64_t waiting = 0;
  for (const auto& [state, buckets] : report.bucket_summary.states) {
    all += buckets;
    waiting += state == "Ready" || state == "Degraded" ? 0 : buckets;
  }
  if (report.phase != Phase::kStarting || all == 0) {
    return "";
  }
  return waiting > 0 ? Text("%llu of %s ready", Wide(all - waiting), Counted(all, "bucket").c_str())
                     : "all buckets are ready, waiting for " + WhoIsMissing(report);
}

std::string ProgressLine(const JobReport& report) {
  return Text("epoch %llu/%llu: ", Wide(report.epoch), Wide(report.epochs)) +
         (report.total_examples > 0 ? Text("%llu of %llu examples, ",
                                           Wide(report.counted_examples),
                                           Wide(report.total_examples))
                                    : "") +
         (report.training_loss != 0 ? Text("loss %.4f, ", report.training_loss) : "") +
         Text("%.0f examples/s", report.examples_per_second);
}

bool DidNotLearn(EndKind end) {
  return end == EndKind::kDidNotLearn || end == EndKind::kLostLearned;
}

bool HadDiverged(EndKind end) {
  return end == EndKind::kDiverged || end == EndKind::kDivergedAgain;
}

bool IsPoor(EndKind end) { return end == EndKind::kPoor || DidNotLearn(end) || HadDiverged(end); }

bool MayDoBetter(EndKind end) {
  return !DidNotLearn(end) && end != EndKind::kAllLost && end != EndKind::kStateIsOld;
}

std::string WhatNext(const JobReport& report, const std::string& run_folder) {
  const std::string first =  // the message says what
      report.end == EndKind::kDidNotLearn ? "once the cause is put right, " : "";
  return MayDoBetter(report.end) ? HowToGoOn(report, run_folder)
                                 : first + HowToBeginAnew(run_folder);
}

std::string HowToBeginAnew(const std::string& run_folder) {
  return "begin anew with: adamant train " + local::RunPaths(run_folder).job().string() +
         " --run-dir NEW_FOLDER";
}

double SecondsLeft(const JobReport& report, double evaluation_seconds, double epoch_completion) {
  if (report.examples_per_second <= 0 || report.total_examples == 0) {
    return -1;
  }
  const double total = epoch_completion * static_cast<double>(report.total_examples);
  const auto epochs =
      static_cast<double>(report.epochs - std::min<std::uint64_t>(report.epoch, report.epochs));
  const double examples =
      total * (epochs + 1) - std::min(static_cast<double>(report.counted_examples), total);
  return examples / report.examples_per_second + (epochs + 1) * evaluation_seconds;
}

}  // namespace adamant::cli
