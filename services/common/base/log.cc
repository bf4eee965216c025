#include "services/common/base/log.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <ctime>

namespace adamant {
namespace {

// The logger is the one piece of process-wide state: every library logs, and none should have to be
// handed a logger.
std::atomic<LogLevel> log_level = LogLevel::kInfo;
char process_name[64] = "";

std::string_view LevelName(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "unknown";
}

void AppendQuoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20) {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", byte);
      out += escaped;
    } else {
      out += c;
    }
  }
  out += '"';
}

void AppendValue(std::string& out, const LogField& field) {
  if (const auto* text = std::get_if<std::string_view>(&field.value)) {
    AppendQuoted(out, *text);
  } else if (const auto* integer = std::get_if<std::int64_t>(&field.value)) {
    out += std::to_string(*integer);
  } else if (const auto* natural = std::get_if<std::uint64_t>(&field.value)) {
    out += std::to_string(*natural);
  } else if (const auto* real = std::get_if<double>(&field.value)) {
    char buffer[32];
    std::snprintf(buffer, sizeof(buffer), std::isfinite(*real) ? "%.9g" : "\"%g\"", *real);
    out += buffer;
  } else {
    out += std::get<bool>(field.value) ? "true" : "false";
  }
}

void AppendTime(std::string& out) {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const std::int64_t millis = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = millis / 1000;
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  char buffer[48];
  const std::size_t length = std::strftime(buffer, sizeof(buffer), "%Y-%m-%dT%H:%M:%S", &utc);
  out.append(buffer, length);
  std::snprintf(buffer, sizeof(buffer), ".%03dZ", static_cast<int>(millis % 1000));
  out += buffer;
}

}  // namespace

void InitLog(std::string_view process, LogLevel level) {
  std::snprintf(
      process_name, sizeof(process_name), "%.*s", static_cast<int>(process.size()), process.data());
  log_level = level;
}

void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields) {
  if (level < log_level.load(std::memory_order_relaxed)) {
    return;
  }
  std::string line = "{\"time\":\"";
  AppendTime(line);
  line += "\",\"level\":\"";
  line += LevelName(level);
  line += '"';
  if (process_name[0] != '\0') {
    line += ",\"process\":";
    AppendQuoted(line, process_name);
  }
  line += ",\"message\":";
  AppendQuoted(line, message);
  for (const LogField& field : fields) {
    line += ',';
    AppendQuoted(line, field.key);
    line += ':';
    AppendValue(line, field);
  }
  line += "}\n";
  // A log line that cannot be written has nowhere to be reported.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace adamant
