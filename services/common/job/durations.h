#pragma once

#include <chrono>

namespace google::protobuf {
class Duration;
}  // namespace google::protobuf

namespace adamant::job {

std::chrono::nanoseconds ToNanoseconds(const google::protobuf::Duration& duration);

/// Rounded down.
std::chrono::milliseconds ToMilliseconds(const google::protobuf::Duration& duration);

std::chrono::milliseconds RoundUpToMilliseconds(const google::protobuf::Duration& duration);

}  // namespace adamant::job
