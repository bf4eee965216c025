#include "operator/control/record_codec.h"

#include "proto/adamant/v1/control.pb.h"

namespace adamant::control {

controller::Holder DecodeHolder(const v1::Holder& holder) {
  return {.slot = holder.slot(), .incarnation = holder.incarnation()};
}

void EncodeHolder(const controller::Holder& holder, v1::Holder& encoded) {
  encoded.set_slot(holder.slot);
  encoded.set_incarnation(holder.incarnation);
}

controller::Bucket DecodeRecord(const v1::Bucket& record) {
  controller::Bucket decoded;
  decoded.epoch = record.epoch();
  decoded.generation = record.generation();
  decoded.primary = DecodeHolder(record.primary());
  for (const v1::Holder& member : record.members()) {
    decoded.members.push_back(DecodeHolder(member));
  }
  decoded.created = record.created();
  if (record.has_learner()) {
    decoded.learner = DecodeHolder(record.learner());
  }
  if (record.has_leaver()) {
    decoded.leaver = DecodeHolder(record.leaver());
  }
  if (record.has_heir()) {
    decoded.heir = DecodeHolder(record.heir());
  }
  decoded.restored_snapshot = record.restored_snapshot();
  return decoded;
}

void EncodeRecord(const controller::Bucket& record, v1::Bucket& encoded) {
  encoded.set_epoch(record.epoch);
  encoded.set_generation(record.generation);
  EncodeHolder(record.primary, *encoded.mutable_primary());
  for (const controller::Holder& member : record.members) {
    EncodeHolder(member, *encoded.add_members());
  }
  encoded.set_created(record.created);
  if (record.learner) {
    EncodeHolder(*record.learner, *encoded.mutable_learner());
  }
  if (record.leaver) {
    EncodeHolder(*record.leaver, *encoded.mutable_leaver());
  }
  if (record.heir) {
    EncodeHolder(*record.heir, *encoded.mutable_heir());
  }
  encoded.set_restored_snapshot(record.restored_snapshot);
}

controller::FailoverTimes DecodeTimes(const v1::FailoverTimes& times) {
  return {.detect_seconds = times.detect_seconds(),
          .replace_seconds = times.replace_seconds(),
          .reconcile_seconds = times.reconcile_seconds()};
}

}  // namespace adamant::control
