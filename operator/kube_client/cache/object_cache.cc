#include "operator/kube_client/cache/object_cache.h"

#include <utility>

#include "services/common/base/check.h"

namespace adamant::kube {

void ObjectCache::AddIndex(std::string name, IndexFunction values_of) {
  const MutexLock lock(mutex_);
  indexes_.emplace(std::move(name), Index{std::move(values_of), {}});
}

void ObjectCache::AddHandler(Handler handler) { handlers_.push_back(std::move(handler)); }

void ObjectCache::BeginReplace() {
  replacing_ = true;
  replacement_.clear();
}

void ObjectCache::EndReplace() {
  replacing_ = false;
  Entries replacement = std::exchange(replacement_, {});
  std::vector<ObjectKey> gone;
  {
    const MutexLock lock(mutex_);
    for (const auto& [key, entry] : entries_) {
      if (!replacement.contains(key)) {
        gone.push_back(key);
      }
    }
  }
  for (const ObjectKey& key : gone) {
    Erase(key, true);
  }
  for (auto& [key, entry] : replacement) {
    Put(key, std::move(entry));
  }
  const MutexLock lock(mutex_);
  synced_ = true;
  changed_.NotifyAll();
}

void ObjectCache::Upsert(const Json& object) {
  const ObjectKey key = KeyOf(object);
  Entry entry{UidOf(object), ResourceVersionOf(object), KnownValue(object)};
  if (entry.value == nullptr) {
    entry.value = parse_(object);
  }
  if (entry.value == nullptr) {
    Remove(object);
  } else if (replacing_) {
    replacement_.insert_or_assign(key, std::move(entry));
  } else {
    Put(key, std::move(entry));
  }
}

void ObjectCache::Remove(const Json& object) {
  const ObjectKey key = KeyOf(object);
  if (replacing_) {
    replacement_.erase(key);
  } else {
    Erase(key, false);
  }
}

void ObjectCache::Resend() {
  Entries entries;
  {
    const MutexLock lock(mutex_);
    entries = entries_;
  }
  for (const auto& [key, entry] : entries) {
    Tell({key, entry.value, entry.value});
  }
}

// A list brings mostly what is known: its values stay, and only one copy of them is in memory.
ObjectCache::Value ObjectCache::KnownValue(const Json& object) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(KeyOf(object));
  const bool known = found != entries_.end() && found->second.uid == UidOf(object) &&
                     found->second.resource_version == ResourceVersionOf(object);
  return known ? found->second.value : nullptr;
}

void ObjectCache::Put(const ObjectKey& key, Entry entry) {
  Entry before;
  {
    const MutexLock lock(mutex_);
    if (const auto found = entries_.find(key); found != entries_.end()) {
      before = found->second;
    }
  }
  if (before.value != nullptr && before.uid != entry.uid) {
    Erase(key, true);
    before = {};
  }
  if (before.value != nullptr && before.resource_version == entry.resource_version) {
    return;
  }
  const Value after = entry.value;
  {
    const MutexLock lock(mutex_);
    Unlink(key, before.value);
    Link(key, after);
    entries_.insert_or_assign(key, std::move(entry));
  }
  Tell({key, before.value, after});
}

void ObjectCache::Erase(const ObjectKey& key, bool final_state_unknown) {
  Value before;
  {
    const MutexLock lock(mutex_);
    const auto found = entries_.find(key);
    if (found == entries_.end()) {
      return;
    }
    before = std::move(found->second.value);
    entries_.erase(found);
    Unlink(key, before);
  }
  Tell({key, before, nullptr, final_state_unknown});
}

void ObjectCache::Tell(const Change& change) const {
  for (const Handler& handler : handlers_) {
    handler(change);
  }
}

void ObjectCache::Link(const ObjectKey& key, const Value& value) {
  for (auto& [name, index] : indexes_) {
    for (std::string& at : index.values_of(value.get())) {
      index.keys[std::move(at)].insert(key);
    }
  }
}

void ObjectCache::Unlink(const ObjectKey& key, const Value& value) {
  if (value == nullptr) {
    return;
  }
  for (auto& [name, index] : indexes_) {
    for (const std::string& at : index.values_of(value.get())) {
      const auto found = index.keys.find(at);
      if (found == index.keys.end()) {
        continue;  // named twice
      }
      found->second.erase(key);
      if (found->second.empty()) {
        index.keys.erase(found);
      }
    }
  }
}

ObjectCache::Value ObjectCache::Get(const ObjectKey& key) const {
  const MutexLock lock(mutex_);
  const auto found = entries_.find(key);
  return found != entries_.end() ? found->second.value : nullptr;
}

std::vector<ObjectCache::Value> ObjectCache::All() const {
  const MutexLock lock(mutex_);
  std::vector<Value> values;
  values.reserve(entries_.size());
  for (const auto& [key, entry] : entries_) {
    values.push_back(entry.value);
  }
  return values;
}

std::vector<ObjectCache::Value> ObjectCache::ByIndex(std::string_view index,
                                                     std::string_view value) const {
  const MutexLock lock(mutex_);
  const auto found = indexes_.find(index);
  ADAMANT_CHECK(found != indexes_.end(), "no index has this name");
  std::vector<Value> values;
  const auto keys = found->second.keys.find(value);
  if (keys == found->second.keys.end()) {
    return values;
  }
  for (const ObjectKey& key : keys->second) {
    values.push_back(entries_.at(key).value);
  }
  return values;
}

std::size_t ObjectCache::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

bool ObjectCache::synced() const {
  const MutexLock lock(mutex_);
  return synced_;
}

bool ObjectCache::WaitUntilSynced(std::chrono::milliseconds timeout) const {
  const auto end = std::chrono::steady_clock::now() + timeout;
  const MutexLock lock(mutex_);
  while (!synced_) {
    const auto left = end - std::chrono::steady_clock::now();
    if (left <= std::chrono::steady_clock::duration::zero()) {
      return false;
    }
    changed_.WaitFor(mutex_, left);
  }
  return true;
}

}  // namespace adamant::kube
