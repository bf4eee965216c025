#include "operator/cli/console/text.h"

#include <algorithm>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <string_view>

namespace adamant::cli {
namespace {

constexpr std::size_t kLongMessage = 320;  // four lines of a terminal

}  // namespace

std::string Text(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  char text[512];
  std::vsnprintf(text, sizeof(text), format, arguments);
  va_end(arguments);
  return text;
}

std::string InLines(std::string message) {
  if (message.size() <= kLongMessage) {
    return message;
  }
  constexpr std::string_view kBreak = "; ";
  constexpr std::string_view kNewLine = ";\n  ";
  for (std::size_t at = 0; (at = message.find(kBreak, at)) != std::string::npos;
       at += kNewLine.size()) {
    message.replace(at, kBreak.size(), kNewLine);
  }
  return message;
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
