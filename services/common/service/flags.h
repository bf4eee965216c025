#pragma once

#include <string_view>
#include <variant>

#include "services/common/base/log.h"
#include "services/common/service/service.h"

namespace CLI {  // NOLINT(readability-identifier-naming): the library's name
class App;
class Option;
}  // namespace CLI

namespace adamant::service {

struct ParsedFlags {
  ServiceFlags service;
  LogLevel log_level = LogLevel::kInfo;
  int parent_pid = 0;           ///< 0: none; else the process is to end with that one
  int signalled_exit_code = 0;  ///< after an orderly stop that a signal has asked for
};

/// Adds the flags of TLS to a program, which `flags` must outlive: given all or none, and then the
/// variable ADAMANT_ROOTS, too. Returns --certificates.
CLI::Option* AddTlsOptions(CLI::App& app, TlsFlags& flags);

/// The flags of a process of `role` ("parameter-server"), or the exit code when there is nothing
/// more to do: --help printed (0), or what is wrong with them (2).
std::variant<ParsedFlags, int> ParseFlags(int argc, char** argv, std::string_view role);

}  // namespace adamant::service
