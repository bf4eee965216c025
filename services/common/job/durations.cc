#include "services/common/job/durations.h"

#include <google/protobuf/duration.pb.h>

namespace adamant::job {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

nanoseconds ToNanoseconds(const google::protobuf::Duration& duration) {
  return seconds(duration.seconds()) + nanoseconds(duration.nanos());
}

milliseconds ToMilliseconds(const google::protobuf::Duration& duration) {
  return seconds(duration.seconds()) +
         std::chrono::floor<milliseconds>(nanoseconds(duration.nanos()));
}

milliseconds RoundUpToMilliseconds(const google::protobuf::Duration& duration) {
  return seconds(duration.seconds()) +
         std::chrono::ceil<milliseconds>(nanoseconds(duration.nanos()));
}

}  // namespace adamant::job
