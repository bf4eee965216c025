#pragma once

#include "operator/core/state/messages.h"

namespace adamant::v1 {
class Bucket;
class FailoverTimes;
class Holder;
}  // namespace adamant::v1

/// Parts of messages that several messages share.
namespace adamant::control {

controller::Holder DecodeHolder(const v1::Holder& holder);
void EncodeHolder(const controller::Holder& holder, v1::Holder& encoded);

controller::Bucket DecodeRecord(const v1::Bucket& record);
void EncodeRecord(const controller::Bucket& record, v1::Bucket& encoded);

controller::FailoverTimes DecodeTimes(const v1::FailoverTimes& times);

}  // namespace adamant::control
