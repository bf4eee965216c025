#pragma once

#include <google/protobuf/stubs/logging.h>

namespace adamant::fuzz {

/// Nobody reads what Protobuf would say of each message that is none.
inline google::protobuf::LogHandler* const kSilentProtobuf =
    google::protobuf::SetLogHandler(nullptr);

}  // namespace adamant::fuzz
