#include "operator/cli/console/text.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>

namespace adamant::cli {

std::string Text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

std::string FormatSeconds(double seconds) {
  const auto whole = static_cast<long>(std::lround(std::max(seconds, 0.0)));
  if (seconds < 10) {
    return Text("%.1fs", std::max(seconds, 0.0));
  }
  if (whole < 60) {
    return Text("%lds", whole);
  }
  if (whole < 3600) {
    return Text("%ldm%02lds", whole / 60, whole % 60);
  }
  return Text("%ldh%02ldm", whole / 3600, whole / 60 % 60);
}

std::string FormatLatency(double seconds) {
  const long milliseconds = std::lround(1000 * std::max(seconds, 0.0));
  return milliseconds < 1000 ? Text("%ldms", milliseconds) : FormatSeconds(seconds);
}

}  // namespace adamant::cli
