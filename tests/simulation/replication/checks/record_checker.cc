#include "tests/simulation/replication/checks/record_checker.h"

#include <algorithm>

#include "services/parameter_server/core/buckets/records.h"

namespace adamant::replication_simulation {

void RecordChecker::Report(const std::string& what, const std::string& key, std::uint64_t version) {
  violations_.Report(what + " (record " + key + ", version " + std::to_string(version) +
                     "; the ledger, " + setup_.Row() + ")");
}

void RecordChecker::CheckValue(const std::string& key,
                               std::uint64_t version,
                               const std::string& value) {
  const Book& book = books_[key];
  const auto known = book.values.find(version);
  if (known == book.values.end() || known->second != value) {
    Report("I7: a record is not what was committed", key, version);
  }
}

void RecordChecker::Committed(const ps::LoggedPut& put) {
  const auto [known, first] = books_[put.key].values.emplace(put.version, put.value);
  if (!first && known->second != put.value) {
    Report("I7: two records of one version are committed", put.key, put.version);
  }
}

void RecordChecker::Stored(const std::string& key,
                           std::uint64_t version,
                           const std::string& value) {
  CheckValue(key, version, value);
  books_[key].told = std::max(books_[key].told, version);
  ++stored_;
}

void RecordChecker::StoredLate(const std::string& key,
                               std::uint64_t version,
                               const std::string& value) {
  const std::map<std::uint64_t, std::string>& lost = books_[key].lost;
  const auto found = lost.find(version);
  if (found == lost.end() || found->second != value) {
    Stored(key, version, value);
  }
}

void RecordChecker::Read(const std::string& key, const ps::Record& record) {
  Book& book = books_[key];
  if (record.version < book.told) {
    return Report("I11: a record that is read is older than what was stored", key, book.told);
  }
  if (record.version > 0) {
    CheckValue(key, record.version, record.value);
  }
  book.told = record.version;
}

void RecordChecker::Serves(BucketId bucket, const ps::RecordMap& records) {
  const std::string& key = setup_.record_of[bucket];
  const auto record = records.find(key);
  const std::uint64_t version = record == records.end() ? 0 : record->second.version;
  if (version < books_[key].told) {
    Report("I5: a primary lacks a record that was stored", key, books_[key].told);
  }
}

// A log may end in what was never committed.
void RecordChecker::Restored(BucketId bucket, const ps::RecordMap& records, bool damaged) {
  const std::string& key = setup_.record_of[bucket];
  Book& book = books_[key];
  const auto found = records.find(key);
  const ps::Record record = found == records.end() ? ps::Record{} : found->second;
  const std::uint64_t last = book.values.empty() ? 0 : book.values.rbegin()->first;
  const auto known = book.values.find(record.version);
  const bool same = known == book.values.end() || known->second == record.value;
  if (!damaged && (record.version < last || !same)) {
    return Report("I12: a total loss takes a record", key, last);
  }
  const auto first_lost = book.values.lower_bound(record.version);
  for (auto each = first_lost; each != book.values.end(); ++each) {
    book.lost.insert_or_assign(each->first, each->second);
  }
  book.values.erase(first_lost, book.values.end());
  if (record.version > 0) {
    book.values.emplace(record.version, record.value);
  }
  book.told = std::min(book.told, record.version);
}

bool RecordChecker::IsStored(const Disk& disk, BucketId bucket, const ps::LoggedPut& put) const {
  const Book& book = books_.at(put.key);
  return std::any_of(
      book.values.lower_bound(put.version), book.values.end(), [&](const auto& committed) {
        const storage::Change change = ps::StoreRecord(
            kJobUid, bucket, put.key, {.version = committed.first, .value = committed.second});
        const auto stored = disk.store().GetDurable(change.key);
        return stored.ok() && *stored == change.value;
      });
}

}  // namespace adamant::replication_simulation
