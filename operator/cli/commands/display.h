#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "operator/local/observer.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
}  // namespace CLI

namespace adamant::cli {

enum class Output { kText, kJson };

/// Declares `--output text|json`.
void AddOutput(CLI::App& command, Output& output);

/// Facts that are told before and after the run itself.
struct Opening {
  std::string job;
  std::string run_folder;
  std::string summary;          ///< "2 workers, 3 parameter servers, …"
  double epoch_completion = 1;  ///< share of an epoch's examples at which it may end
  std::string crowd{};          ///< CrowdText
  std::string speed{};          ///< ExpectationText::speed
};
struct Ending {
  controller::JobReport report;
  std::string run_folder;
  int exit_code = 0;
};

/// Shows a run to whoever started it.
/// Threads: one, the one that runs the job.
class Display : public local::Observer {
 public:
  virtual void OnOpening(const Opening& opening) = 0;
  virtual void OnEnding(const Ending& ending) = 0;
};

/// A live bar when standard output is a terminal, else one line per epoch and a few between; JSON
/// objects, one a line, for kJson. Colours unless NO_COLOR is set.
std::unique_ptr<Display> NewDisplay(Output output);

/// Tells where a run was stopped, and how it goes on, if its folder is still there.
std::string StoppedLine(const Ending& ending);

/// Tells how a run that has ended so, and may do better, goes on, and what to do first.
std::string HowToGoOn(const controller::JobReport& report, const std::string& run_folder);

/// A result, and how the open epoch stands, in a line without its end. A loss that is not known is
/// left out, as that of an epoch in which no worker has trained since the job was resumed.
std::string EpochLine(const controller::EpochResult& result, std::uint64_t epochs);
std::string ProgressLine(const controller::JobReport& report);

/// "3120 of 8192 buckets ready", or who else is waited for, of a job that is starting; else, or
/// before there are any, "".
std::string StartingText(const controller::JobReport& report);

/// Returns true if a job that has ended so has learned nothing.
bool DidNotLearn(controller::EndKind end);

/// Returns true if it failed as training diverged.
bool HadDiverged(controller::EndKind end);

/// Returns true if its model is poor, or it has none for such a reason.
bool IsPoor(controller::EndKind end);

/// Returns true if a job that has failed so may do better when it is resumed. One that learned
/// nothing fails again, and of one that has lost all nothing goes on.
bool MayDoBetter(controller::EndKind end);

/// Tells how a run that has ended so goes on, or begins anew where that alone helps.
std::string WhatNext(const controller::JobReport& report, const std::string& run_folder);

/// The command that trains what the run was to train in another folder.
std::string HowToBeginAnew(const std::string& run_folder);

/// Seconds until the last epoch ends at the present speed, if each ends with the share
/// `epoch_completion` of its examples; negative when it cannot be told.
double SecondsLeft(const controller::JobReport& report,
                   double evaluation_seconds,
                   double epoch_completion);

}  // namespace adamant::cli
