#include "services/common/metrics/process_metrics.h"

#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include "services/common/base/system/files.h"
#include "services/common/metrics/process_stat.h"

namespace adamant::metrics {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 24;  // /proc/stat of many processors

std::optional<double> OpenFiles() {
  std::error_code error;
  double count = -1;  // the folder itself is open, too
  for (std::filesystem::directory_iterator file("/proc/self/fd", error), end; !error && file != end;
       file.increment(error)) {
    ++count;
  }
  return error ? std::nullopt : std::optional(count);
}

}  // namespace

ProcessMetrics::ProcessMetrics(Registry& registry)
    : processor_(
          registry.AddCounter("process_cpu_seconds_total", "Processor time, of user and system.")),
      resident_(registry.AddGauge("process_resident_memory_bytes", "Memory that is resident.")),
      virtual_(registry.AddGauge("process_virtual_memory_bytes", "Address space.")),
      open_files_(registry.AddGauge("process_open_fds", "Open file descriptors.")),
      most_files_(registry.AddGauge("process_max_fds", "Limit on open file descriptors.")),
      started_(
          registry.AddGauge("process_start_time_seconds", "When the process began, Unix time.")) {}

void ProcessMetrics::Update() {
  const auto ticks_per_second = static_cast<double>(sysconf(_SC_CLK_TCK));
  const auto stat = ParseProcessStat(ReadFile("/proc/self/stat", kMostBytes).value_or(""));
  const auto boot = ParseBootTime(ReadFile("/proc/stat", kMostBytes).value_or(""));
  if (stat) {
    const MutexLock lock(mutex_);
    processor_.Reach(static_cast<double>(stat->processor_ticks) / ticks_per_second);
    resident_.Set(static_cast<double>(stat->resident_pages) *
                  static_cast<double>(sysconf(_SC_PAGESIZE)));
    virtual_.Set(static_cast<double>(stat->virtual_bytes));
  }
  if (stat && boot) {
    started_.Set(static_cast<double>(*boot) +
                 static_cast<double>(stat->start_ticks) / ticks_per_second);
  }
  if (const std::optional<double> count = OpenFiles()) {
    open_files_.Set(*count);
  }
  if (rlimit limit{}; getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    most_files_.Set(static_cast<double>(limit.rlim_cur));
  }
}

}  // namespace adamant::metrics
