#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "operator/cli/kubectl/cluster/session.h"

// The commands of `kubectl adamant`. Each Add function declares one, with a callback that runs it
// and leaves an ExitCode in `exit_code`; both arguments must outlive the parsing. What a command
// does once it is connected is a function of a Session, which returns an exit code.
namespace adamant::kubectl {

struct StatusFlags {
  Target target;
  bool json = false;
  bool watch = false;  ///< again as it changes, until the job is over
};
absl::StatusOr<int> ShowStatus(Session& session, const StatusFlags& flags);
void AddStatus(CLI::App& app, int& exit_code);

struct ExplainFlags {
  Target target;
  bool json = false;
};
absl::StatusOr<int> ShowExplanation(Session& session, const ExplainFlags& flags);
void AddExplain(CLI::App& app, int& exit_code);

struct EventsFlags {
  Target target;
  bool watch = false;
};
absl::StatusOr<int> ShowEvents(Session& session, const EventsFlags& flags);
void AddEvents(CLI::App& app, int& exit_code);

struct LogsFlags {
  Target target;
  std::vector<std::string> of;  ///< roles and slots: "worker", "worker-0"; none: all
  bool follow = false;
  bool previous = false;  ///< of the start before the newest
  int tail = -1;          ///< last lines of each; -1: all
};
absl::StatusOr<int> ShowLogs(Session& session, const LogsFlags& flags);
void AddLogs(CLI::App& app, int& exit_code);

struct CheckpointFlags {
  Target target;
  int timeout_seconds = 120;
};
absl::StatusOr<int> TakeCheckpoint(Session& session, const CheckpointFlags& flags);
void AddCheckpoint(CLI::App& app, int& exit_code);

struct ExportFlags {
  Target target;
  std::string format;  ///< "safetensors" or "onnx"; empty: both
  std::string out;     ///< folder; empty: named as the job
  std::string image;   ///< of the pod that reads the volume; empty: the operator's
  int timeout_seconds = 120;
};
absl::StatusOr<int> ExportOutput(Session& session, const ExportFlags& flags);
void AddExport(CLI::App& app, int& exit_code);

struct CheckFlags {
  Target target;
  int timeout_seconds = 240;  ///< for all of it
  bool keep = false;          ///< the job stays
};
absl::StatusOr<int> CheckCluster(Session& session, const CheckFlags& flags);
void AddCheck(CLI::App& app, int& exit_code);

}  // namespace adamant::kubectl
