#pragma once

namespace adamant::cli {

/// Codes that `adamant` exits with; docs/cli.md and --help tell users.
enum ExitCode : int {
  kOk = 0,
  kJobFailed = 1,    ///< the job ran and failed, or what was asked could not be done
  kBadInput = 2,     ///< flags, manifest, data or model are wrong; nothing was started
  kInterrupted = 3,  ///< stopped by the user; --resume goes on
  kCannotRun = 4,  ///< this machine does not let it: files, disk, ports, programs, another adamant
};

}  // namespace adamant::cli
