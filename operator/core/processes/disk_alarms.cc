#include "operator/core/processes/disk_alarms.h"

#include <algorithm>

#include "operator/core/state/number_text.h"

namespace adamant::controller {

std::string DiskAlarms::OnAlarm(SlotId server,
                                const std::string& alarm,
                                const Progress& progress,
                                TimePoint now) {
  const std::string name = ToString(server) + ": ";
  if (alarm.empty()) {
    if (alarms_.erase(server) > 0) {
      outbox_.Tell(Note::Kind::kAlarm, server, name + "stores again");
    }
    return "";
  }
  if (!progress.counting || progress.counted != counted_) {
    counted_ = progress.counted;
    last_progress_ = now;
  }
  const auto [raised, is_new] =
      alarms_.emplace(server, Alarm{.text = alarm, .since = now, .told = now});
  raised->second.text = alarm;
  if (!is_new && now - std::max(raised->second.since, last_progress_) >= kTimeout) {
    return name + alarm + "; nothing can be counted any more";
  }
  if (is_new || now - raised->second.told >= kInterval) {
    raised->second.told = now;
    const auto time =
        std::chrono::duration_cast<std::chrono::milliseconds>(now - raised->second.since);
    outbox_.Tell(Note::Kind::kAlarm,
                 server,
                 name + alarm +
                     (progress.begun ? "; training goes on" : "; the job waits for room") +
                     (is_new ? "" : ", for " + SecondsText(time) + " now"));
  }
  return "";
}

void DiskAlarms::OnStored(SlotId server, const StoredBuckets& stored) {
  const auto first = std::ranges::find(stored.buckets, false, &StoredBucket::complete);
  if (first == stored.buckets.end() || stored_damages_[server] == first->detail) {
    return;
  }
  stored_damages_[server] = first->detail;
  const auto damaged = std::ranges::count(stored.buckets, false, &StoredBucket::complete);
  outbox_.Tell(Note::Kind::kAlarm,
               server,
               ToString(server) + ": " + std::to_string(damaged) +
                   (damaged == 1 ? " bucket on its disk is not used: "
                                 : " buckets on its disk are not used: ") +
                   first->detail);
}

void DiskAlarms::OnDamages(SlotId server, const std::vector<std::string>& damages) {
  for (const std::string& damage : damages) {
    if (running_damages_[server].insert(damage).second) {
      outbox_.Tell(
          Note::Kind::kAlarm, server, ToString(server) + ": its disk is damaged: " + damage);
    }
  }
}

void DiskAlarms::Forget(SlotId server) {
  alarms_.erase(server);
  running_damages_.erase(server);
}

std::string DiskAlarms::AlarmOf(SlotId server) const {
  const auto found = alarms_.find(server);
  return found == alarms_.end() ? "" : found->second.text;
}

}  // namespace adamant::controller
