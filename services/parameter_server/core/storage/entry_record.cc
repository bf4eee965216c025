#include "services/parameter_server/core/storage/entry_record.h"

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/parameter_server/core/updates/operands.h"

namespace adamant::parameter_server {
namespace {

/// Version 1 lacks the corrections of updates.
constexpr std::uint64_t kFormatVersion = 2;

std::string Key(BucketId bucket, Lsn lsn) {
  char key[40];
  std::snprintf(
      key, sizeof(key), "log/%08x/%016llx", bucket.value(), static_cast<unsigned long long>(lsn));
  return key;
}

struct Header {
  std::uint64_t format_version;
  std::uint64_t generation;
  std::uint64_t lsn;
  std::uint64_t origin;
  std::uint64_t operands;
  std::uint64_t updates;
  std::uint64_t puts;
};

struct OperandsHeader {
  std::uint32_t tensor;
  std::uint32_t rows;
  std::uint32_t inputs;
  std::uint32_t outputs;
};

struct UpdateHeader {
  ShardId shard;
  std::uint32_t slot;
  Incarnation incarnation;
  Sequence sequence;
  std::uint64_t job_examples;
  std::uint32_t kind;
  std::uint32_t after_loss;
  std::uint64_t operands;  // index
};

/// After UpdateHeader, from version 2 on.
struct CorrectionHeader {
  float rate;
  float memory;
};

struct PutHeader {
  std::uint64_t key_bytes;
  std::uint64_t version;
  std::uint64_t value_bytes;
};

class Encoder {
 public:
  template <class T>
  void Put(const T& value) {
    Bytes(&value, sizeof(value));
  }
  void Floats(std::span<const float> values) { Bytes(values.data(), values.size_bytes()); }
  void Text(std::string_view text) {
    Bytes(text.data(), text.size());
    out_.append((8 - out_.size() % 8) % 8, '\0');  // what follows is aligned
  }
  std::string Take() { return std::move(out_); }
  void Reserve(std::size_t bytes) { out_.reserve(bytes); }
  [[nodiscard]] std::span<const std::byte> bytes() const { return std::as_bytes(std::span(out_)); }

 private:
  void Bytes(const void* bytes, std::size_t size) {
    out_.append(static_cast<const char*>(bytes), size);
  }
  std::string out_;
};

/// Reads what Encoder wrote. After anything that does not fit, ok() is false and all is empty.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : all_(bytes), left_(bytes) {}

  template <class T>
  T Get() {
    T value{};
    const std::string_view bytes = Take(sizeof(T));
    if (!bytes.empty()) {
      std::memcpy(&value, bytes.data(), sizeof(T));
    }
    return value;
  }
  std::span<const float> Floats(std::uint64_t count) {
    if (count > left_.size() / sizeof(float)) {
      ok_ = false;
      return {};
    }
    const std::string_view bytes = Take(count * sizeof(float));
    return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
  }
  std::string Text(std::uint64_t size) {
    const std::string text(Take(size));
    const std::size_t read = all_.size() - left_.size();
    Take((8 - read % 8) % 8);
    return text;
  }
  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool AtEnd() const { return ok_ && left_.empty(); }

 private:
  std::string_view Take(std::uint64_t size) {
    if (!ok_ || size > left_.size()) {
      ok_ = false;
      return {};
    }
    const std::string_view taken = left_.substr(0, size);
    left_.remove_prefix(size);
    return taken;
  }

  const std::string_view all_;
  std::string_view left_;
  bool ok_ = true;
};

/// The operands that the updates share, each once.
std::vector<const SharedOperands*> OperandsOf(const Entry& entry) {
  std::vector<const SharedOperands*> operands;
  for (const LoggedUpdate& update : entry.updates) {
    if (update.operands != nullptr &&
        std::ranges::find(operands, update.operands.get()) == operands.end()) {
      operands.push_back(update.operands.get());
    }
  }
  return operands;
}

absl::Status Corrupt() { return absl::DataLossError("a logged entry is damaged"); }

std::vector<std::shared_ptr<const SharedOperands>> ReadOperands(
    Decoder& reader, std::uint64_t count, const std::shared_ptr<const void>& owner) {
  std::vector<std::shared_ptr<const SharedOperands>> all;
  for (std::uint64_t i = 0; i < count && reader.ok(); ++i) {
    const auto header = reader.Get<OperandsHeader>();
    Operands operands{.tensor = header.tensor,
                      .rows = header.rows,
                      .inputs = header.inputs,
                      .outputs = header.outputs};
    operands.activations = reader.Floats(std::uint64_t{header.rows} * header.inputs);
    operands.errors = reader.Floats(std::uint64_t{header.rows} * header.outputs);
    all.push_back(std::make_shared<const SharedOperands>(SharedOperands{operands, owner}));
  }
  return all;
}

bool ReadUpdate(Decoder& reader,
                std::uint64_t format_version,
                const ShardLayout& layout,
                const std::vector<std::shared_ptr<const SharedOperands>>& operands,
                Entry& entry) {
  const auto header = reader.Get<UpdateHeader>();
  if (!reader.ok() || header.shard >= layout.shards().size() ||
      header.kind > static_cast<std::uint32_t>(UpdateKind::kOuterProduct)) {
    return false;
  }
  LoggedUpdate update{.shard = header.shard,
                      .writer = {.slot = header.slot, .incarnation = header.incarnation},
                      .sequence = header.sequence,
                      .after_loss = header.after_loss != 0,
                      .kind = static_cast<UpdateKind>(header.kind),
                      .job_examples = header.job_examples};
  if (format_version > 1) {
    const auto correction = reader.Get<CorrectionHeader>();
    update.correction = {.rate = correction.rate, .memory = correction.memory};
    if (!update.correction.IsValid()) {
      return false;
    }
  }
  if (update.kind == UpdateKind::kOuterProduct) {
    if (header.operands >= operands.size()) {
      return false;
    }
    update.operands = operands[header.operands];
    const Operands& product = update.operands->operands;
    if (!FitsTensor(layout, product) || product.tensor != layout.shards()[header.shard].tensor) {
      return false;
    }
  } else {
    update.values = reader.Floats(layout.shards()[header.shard].size());
  }
  entry.updates.push_back(std::move(update));
  return reader.ok();
}

}  // namespace

storage::Change StoreEntry(BucketId bucket, std::uint64_t generation, const Entry& entry) {
  const auto operands = OperandsOf(entry);
  Encoder writer;
  writer.Reserve(entry.bytes + 1024 +
                 entry.updates.size() * (sizeof(UpdateHeader) + sizeof(CorrectionHeader)));
  writer.Put(Header{.format_version = kFormatVersion,
                    .generation = generation,
                    .lsn = entry.lsn,
                    .origin = entry.origin,
                    .operands = operands.size(),
                    .updates = entry.updates.size(),
                    .puts = entry.puts.size()});
  for (const SharedOperands* shared : operands) {
    const Operands& each = shared->operands;
    writer.Put(OperandsHeader{each.tensor, each.rows, each.inputs, each.outputs});
    writer.Floats(each.activations);
    writer.Floats(each.errors);
  }
  for (const LoggedUpdate& update : entry.updates) {
    const auto index = std::ranges::find(operands, update.operands.get()) - operands.begin();
    writer.Put(UpdateHeader{.shard = update.shard,
                            .slot = update.writer.slot,
                            .incarnation = update.writer.incarnation,
                            .sequence = update.sequence,
                            .job_examples = update.job_examples,
                            .kind = static_cast<std::uint32_t>(update.kind),
                            .after_loss = update.after_loss ? 1u : 0u,
                            .operands = static_cast<std::uint64_t>(index)});
    writer.Put(CorrectionHeader{update.correction.rate, update.correction.memory});
    writer.Floats(update.values);
  }
  for (const LoggedPut& put : entry.puts) {
    writer.Put(PutHeader{put.key.size(), put.version, put.value.size()});
    writer.Text(put.key);
    writer.Text(put.value);
  }
  writer.Put(Checksum(writer.bytes()));
  return {.key = Key(bucket, entry.lsn), .value = writer.Take()};
}

absl::StatusOr<StoredEntry> DecodeEntry(std::string_view stored, const ShardLayout& layout) {
  std::uint64_t checksum = 0;
  if (stored.size() < sizeof(Header) + sizeof(checksum)) {
    return Corrupt();
  }
  const auto owner = std::make_shared<const std::string>(stored);
  const std::string_view body =
      std::string_view(*owner).substr(0, owner->size() - sizeof(checksum));
  std::memcpy(&checksum, body.end(), sizeof(checksum));
  Decoder reader(body);
  const auto header = reader.Get<Header>();
  if (header.format_version < 1 || header.format_version > kFormatVersion) {
    return absl::FailedPreconditionError(
        "a logged entry has format version " + std::to_string(header.format_version) +
        ", this program reads versions 1 to " + std::to_string(kFormatVersion));
  }
  if (checksum != Checksum(std::as_bytes(std::span(body)))) {
    return Corrupt();
  }
  auto entry = std::make_shared<Entry>();
  entry->lsn = header.lsn;
  entry->origin = header.origin;
  entry->owner = owner;
  entry->bytes = stored.size();
  const auto operands = ReadOperands(reader, header.operands, owner);
  for (std::uint64_t i = 0; i < header.updates; ++i) {
    if (!ReadUpdate(reader, header.format_version, layout, operands, *entry)) {
      return Corrupt();
    }
  }
  for (std::uint64_t i = 0; i < header.puts && reader.ok(); ++i) {
    const auto put = reader.Get<PutHeader>();
    std::string key = reader.Text(put.key_bytes);
    entry->puts.push_back({std::move(key), put.version, reader.Text(put.value_bytes)});
  }
  if (!reader.AtEnd()) {
    return Corrupt();
  }
  return StoredEntry{.generation = header.generation, .entry = std::move(entry)};
}

absl::StatusOr<std::vector<StoredEntry>> LoadEntries(BucketId bucket,
                                                     const ShardLayout& layout,
                                                     const storage::KvStore& store) {
  const std::string prefix = Key(bucket, 0).substr(0, sizeof("log/00000000/") - 1);
  std::vector<StoredEntry> entries;
  absl::Status problem;
  ADAMANT_RETURN_IF_ERROR(store.Scan(prefix, [&](std::string_view, std::string_view stored) {
    auto entry = DecodeEntry(stored, layout);
    problem = entry.status();
    if (entry.ok()) {
      entries.push_back(*std::move(entry));
    }
    return problem.ok();
  }));
  ADAMANT_RETURN_IF_ERROR(problem);
  return entries;
}

storage::Change EraseEntries(BucketId bucket, Lsn from, Lsn to) {
  constexpr Lsn kLast = std::numeric_limits<Lsn>::max() - 1;
  return {.key = Key(bucket, from + 1),
          .value = "",
          .erase = true,
          .end = Key(bucket, std::min(to, kLast) + 1)};
}

}  // namespace adamant::parameter_server
