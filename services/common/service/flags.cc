#include "services/common/service/flags.h"

#include <CLI/CLI.hpp>
#include <array>
#include <cstdlib>
#include <map>
#include <sstream>
#include <string>

#include "services/common/base/system/listen.h"
#include "services/common/rpc/resolve.h"
#include "services/common/security/certificate.h"

namespace adamant::service {
namespace {

constexpr int kBadFlags = 2;
constexpr char kRoots[] = "ADAMANT_ROOTS";

// Empty when `text` is host:port, else what is wrong.
std::string CheckHostAndPort(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
  const bool digits = !port.empty() && port.size() <= 5 &&
                      port.find_first_not_of("0123456789") == std::string::npos;
  if (colon == 0 || !digits || std::stoi(port) > 65535) {
    return "expected host:port, not \"" + text + "\"";
  }
  return "";
}

// The same; a Unix socket is an address, too.
std::string CheckAddress(const std::string& text) {
  return IsUnixSocket(text) ? "" : CheckHostAndPort(text);
}

// The same, of several separated by commas.
std::string CheckAddresses(const std::string& text) {
  std::istringstream rest(text);
  for (std::string address; std::getline(rest, address, ',');) {
    if (std::string wrong = CheckAddress(address); !wrong.empty()) {
      return wrong;
    }
  }
  return text.empty() || text.back() == ',' ? CheckAddress("") : "";
}

// Reads the roots from the environment. Empty, or what is wrong.
std::string TakeRoots(TlsFlags& flags) {
  const char* const roots = std::getenv(kRoots);
  flags.roots = roots == nullptr ? "" : roots;
  const absl::Status status = security::CheckRoots(flags.roots);
  return status.ok() ? "" : std::string(kRoots) + ": " + std::string(status.message());
}

void AddServiceOptions(std::string_view role, CLI::App& app, ServiceFlags& service) {
  const CLI::Validator address(CheckAddress, "HOST:PORT|unix:PATH");
  app.add_option("--controller",
                 service.controller,
                 "Where the job's controller may be: several addresses, or names of several, are "
                 "separated by commas")
      ->required()
      ->check(CLI::Validator(CheckAddresses, "HOST:PORT|unix:PATH,..."));
  CLI::Option* const job =
      app.add_option("--job", service.job, "UID of the job, for a controller of many");
  app.add_option("--slot", service.slot, "Position among the job's processes of this kind, from 0")
      ->required();
  CLI::Option* const generation =
      app.add_option("--generation",
                     service.generation,
                     "Which of the slot's processes this is, from 1: a later one takes its place");
  AddTlsOptions(app, service.tls)->needs(job)->needs(generation);
  app.add_option("--pod-uid", service.pod_uid, "UID of the pod that this process runs in")
      ->envname("ADAMANT_POD_UID");
  app.add_option("--data-dir", service.data_dir, "Folder of this process alone; made if missing")
      ->required();
  app.add_option("--listen", service.listen, "Address to serve at; port 0: any")
      ->check(address)
      ->capture_default_str();
  app.add_option("--metrics-listen", service.metrics_listen, "Address of /metrics; port 0: any")
      ->check(CLI::Validator(CheckHostAndPort, "HOST:PORT"))
      ->capture_default_str();
  if (role == "parameter-server") {
    app.add_option("--replication-listen",
                   service.replication_listen,
                   "Address to serve other parameter servers at; port 0: any")
        ->check(address)
        ->capture_default_str();
    app.add_option("--node", service.node, "Machine that it runs on; copies go to different ones");
    app.add_option("--zone", service.zone, "Its zone, for a controller that does not know it");
  }
}

}  // namespace

CLI::Option* AddTlsOptions(CLI::App& app, TlsFlags& flags) {
  CLI::Option* const certificates =
      app.add_option("--certificates",
                     flags.certificates,
                     "Where operators give certificates, in the form of --controller: the job's "
                     "processes then talk by TLS alone, and the first roots that they trust are in "
                     "the variable ADAMANT_ROOTS (PEM)")
          ->check(CLI::Validator(CheckAddresses, "HOST:PORT|unix:PATH,..."))
          ->check(CLI::Validator([&flags](const std::string&) { return TakeRoots(flags); }, ""));
  const std::array options = {
      certificates,
      app.add_option("--tls-token", flags.tls_token, "File of the token for a certificate"),
      app.add_option("--trust-domain", flags.trust_domain, "Whose certificates are trusted"),
      app.add_option("--namespace", flags.name_space, "Namespace that the process runs in")};
  for (CLI::Option* const option : options) {
    for (CLI::Option* const other : options) {
      if (option != other) {
        option->needs(other);
      }
    }
  }
  return certificates;
}

std::variant<ParsedFlags, int> ParseFlags(int argc, char** argv, std::string_view role) {
  const std::map<std::string, LogLevel> levels = {{"debug", LogLevel::kDebug},
                                                  {"info", LogLevel::kInfo},
                                                  {"warning", LogLevel::kWarning},
                                                  {"error", LogLevel::kError}};
  ParsedFlags flags;
  ServiceFlags& service = flags.service;
  service.listen = rpc::AnyLoopbackPort();
  service.metrics_listen = service.listen;
  service.replication_listen = service.listen;

  CLI::App app("A " + std::string(role) + " of an Adamant job. Its controller starts it.");
  AddServiceOptions(role, app, service);
  std::string level = "info";
  app.add_option("--log-level", level, "debug, info, warning or error")
      ->check(CLI::IsMember(&levels))
      ->capture_default_str();
  app.add_option("--parent-pid", flags.parent_pid, "Stop when this process, the parent, ends");
  app.add_option("--signalled-exit-code",
                 flags.signalled_exit_code,
                 "Exit code after an orderly stop that a signal has asked for, and not the job's "
                 "controller")
      ->envname("ADAMANT_SIGNALLED_EXIT_CODE")
      ->check(CLI::Range(0, 255))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kBadFlags;
  }
  for (std::string* const listen :
       {&service.listen, &service.metrics_listen, &service.replication_listen}) {
    *listen = rpc::WithBrackets(*listen);
  }
  flags.log_level = levels.at(level);
  return flags;
}

}  // namespace adamant::service
