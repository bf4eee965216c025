#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <variant>

namespace adamant {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

/// One key and value of a log line. Strings are borrowed for the call.
struct LogField {
  std::string_view key;
  std::variant<std::string_view, std::int64_t, std::uint64_t, double, bool> value;

  LogField(std::string_view k, std::string_view v) : key(k), value(v) {}
  LogField(std::string_view k, const char* v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, const std::string& v) : key(k), value(std::string_view(v)) {}
  LogField(std::string_view k, int v) : key(k), value(static_cast<std::int64_t>(v)) {}
  LogField(std::string_view k, unsigned v) : key(k), value(static_cast<std::uint64_t>(v)) {}
  LogField(std::string_view k, long v) : key(k), value(static_cast<std::int64_t>(v)) {}
  LogField(std::string_view k, unsigned long v) : key(k), value(static_cast<std::uint64_t>(v)) {}
  LogField(std::string_view k, double v) : key(k), value(v) {}
  LogField(std::string_view k, bool v) : key(k), value(v) {}
};

/// Lines below `level` are dropped. `process` names the process in every line ("worker-0"). Call
/// once, early in main. The default is kInfo and no name. Threads: before others log.
void InitLog(std::string_view process, LogLevel level);

/// Writes one JSON line to standard error: time, level, process, message and the fields.
/// `message` is constant text; what varies goes into fields: `Log(LogLevel::kInfo, "shard flushed",
/// {{"shard", 3}})`. Threads: any thread; lines never mix (one write call each). Not for hot paths.
void Log(LogLevel level, std::string_view message, std::initializer_list<LogField> fields = {});

inline void LogInfo(std::string_view m, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::kInfo, m, f);
}
inline void LogWarning(std::string_view m, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::kWarning, m, f);
}
inline void LogError(std::string_view m, std::initializer_list<LogField> f = {}) {
  Log(LogLevel::kError, m, f);
}

}  // namespace adamant
