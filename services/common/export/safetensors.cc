#include "services/common/export/safetensors.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>
#include <utility>

#include "services/common/base/checksum.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/files.h"
#include "services/common/base/text/nesting.h"

namespace adamant::exports {
namespace {

using Json = nlohmann::ordered_json;

static_assert(std::endian::native == std::endian::little, "files hold little-endian floats");

constexpr std::size_t kLengthBytes = 8;
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;  // the limit of the format's own library
constexpr std::size_t kMostLevels = 16;                 // of the header; the format has 3
// Of an object of the header. An ordered one looks through all that it has for each that is added.
constexpr std::size_t kMostMembers = 4096;
constexpr char kMetadata[] = "__metadata__";
constexpr char kChecksum[] = "xxh3_64";

absl::Status Broken(const std::string& what) {
  return absl::DataLossError("not a valid safetensors file: " + what);
}

absl::Status CheckTensor(const TensorView& tensor) {
  if (tensor.name == kMetadata) {
    return absl::InvalidArgumentError("a tensor may not be named __metadata__");
  }
  const auto elements = ElementCount(tensor.shape);
  if (!elements.has_value() || static_cast<std::size_t>(*elements) != tensor.values.size()) {
    return absl::InvalidArgumentError("tensor " + tensor.name + " has " +
                                      std::to_string(tensor.values.size()) +
                                      " values for the shape " + ToString(tensor.shape));
  }
  return absl::OkStatus();
}

// Refuses texts in which an object has a key twice; JSON libraries silently drop one.
bool ParseJson(std::string_view text, Json& json) {
  if (NestsDeeper(text, kMostLevels)) {
    return false;
  }
  using Unordered = nlohmann::json;
  std::vector<std::set<std::string>> keys;
  bool refused = false;
  const auto check = [&](int /*depth*/, Unordered::parse_event_t event, Unordered& value) {
    if (event == Unordered::parse_event_t::object_start) {
      keys.emplace_back();
    } else if (event == Unordered::parse_event_t::object_end) {
      keys.pop_back();
    } else if (event == Unordered::parse_event_t::key) {
      refused |=
          !keys.back().insert(value.get<std::string>()).second || keys.back().size() > kMostMembers;
    }
    return true;
  };
  if (Unordered::parse(text, check, /*allow_exceptions=*/false).is_discarded() || refused) {
    return false;
  }
  json = Json::parse(text);
  return true;
}

// A tensor's place within the bytes after the header.
struct Entry {
  std::string name;
  Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

bool IsSizes(const Json& json) {
  return json.is_array() && std::all_of(json.begin(), json.end(), [](const Json& item) {
           return item.is_number_unsigned() && item.get<std::uint64_t>() <= std::uint64_t{1} << 48;
         });
}

absl::StatusOr<Entry> ParseEntry(const std::string& name, const Json& json) {
  const Json dtype = json.is_object() ? json.value("dtype", Json()) : Json();
  const Json shape = json.is_object() ? json.value("shape", Json()) : Json();
  const Json offsets = json.is_object() ? json.value("data_offsets", Json()) : Json();
  if (!dtype.is_string() || !IsSizes(shape) || !IsSizes(offsets) || offsets.size() != 2) {
    return Broken("tensor " + name + " needs dtype, shape and two data_offsets");
  }
  if (dtype != "F32") {
    return absl::UnimplementedError("tensor " + name + " has type " + dtype.get<std::string>() +
                                    "; only F32 is supported");
  }
  Entry entry{name, shape.get<Shape>(), offsets[0], offsets[1]};
  const auto elements = ElementCount(entry.shape);
  if (!elements.has_value() || entry.end < entry.begin ||
      entry.end - entry.begin != static_cast<std::uint64_t>(*elements) * sizeof(float)) {
    return Broken("the data_offsets of tensor " + name + " do not fit its shape");
  }
  return entry;
}

absl::StatusOr<Metadata> ParseMetadata(const Json& json) {
  Metadata metadata;
  if (!json.is_object()) {
    return Broken("__metadata__ is not an object");
  }
  for (const auto& [key, value] : json.items()) {
    if (!value.is_string()) {
      return Broken("__metadata__ holds a value that is not a string: " + key);
    }
    metadata.emplace(key, value.get<std::string>());
  }
  return metadata;
}

// The tensors' bytes must cover the data without gaps or overlaps.
absl::Status CheckCover(const std::vector<Entry>& sorted, std::uint64_t data_bytes) {
  std::uint64_t at = 0;
  for (const Entry& entry : sorted) {
    if (entry.begin != at || entry.end > data_bytes) {
      return Broken("the bytes of tensor " + entry.name +
                    " overlap, leave a gap or exceed the file");
    }
    at = entry.end;
  }
  return at == data_bytes ? absl::OkStatus() : Broken("bytes after the last tensor");
}

std::string Text(const Json& header) {
  return header.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The checksum of a file: of the checksums of its header without this one, and of its tensors in
// the order of their bytes; 16 hexadecimal digits.
class FileChecksum {
 public:
  explicit FileChecksum(const Json& header) {
    const std::string text = Text(header);
    sums_.push_back(Checksum(std::as_bytes(std::span(text))));
  }

  void Add(std::span<const float> values) { sums_.push_back(Checksum(std::as_bytes(values))); }

  [[nodiscard]] std::string Hex() const { return HexChecksum(std::as_bytes(std::span(sums_))); }

 private:
  std::vector<std::uint64_t> sums_;
};

// Takes the checksum out of the file's metadata. Files of others have none.
absl::Status CheckWhole(Json header, TensorFile& file) {
  const auto written = file.metadata.extract(kChecksum);
  if (written.empty()) {
    return absl::OkStatus();
  }
  header[kMetadata].erase(kChecksum);
  FileChecksum checksum(header);
  for (const Tensor& tensor : file.tensors) {
    checksum.Add(tensor.values);
  }
  return checksum.Hex() == written.mapped()
             ? absl::OkStatus()
             : Broken(
                   "it does not have the checksum xxh3_64 of its metadata: it is damaged, or was "
                   "changed and has kept the old one");
}

}  // namespace

absl::StatusOr<std::string> EncodeSafetensors(const std::vector<TensorView>& tensors,
                                              const Metadata& metadata) {
  Json header = Json::object();
  header[kMetadata] = metadata;
  std::uint64_t at = 0;
  for (const TensorView& tensor : tensors) {
    ADAMANT_RETURN_IF_ERROR(CheckTensor(tensor));
    if (header.contains(tensor.name)) {
      return absl::InvalidArgumentError("two tensors are named " + tensor.name);
    }
    const std::uint64_t end = at + tensor.values.size_bytes();
    header[tensor.name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, end}}};
    at = end;
  }
  FileChecksum checksum(header);
  for (const TensorView& tensor : tensors) {
    checksum.Add(tensor.values);
  }
  header[kMetadata][kChecksum] = checksum.Hex();
  std::string text = Text(header);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');  // aligns the data
  std::string bytes;
  bytes.reserve(kLengthBytes + text.size() + at);
  const std::uint64_t length = text.size();
  bytes.append(reinterpret_cast<const char*>(&length), sizeof(length));
  bytes.append(text);
  for (const TensorView& tensor : tensors) {
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size_bytes());
  }
  return bytes;
}

absl::StatusOr<TensorFile> DecodeSafetensors(std::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < kLengthBytes) {
    return Broken("shorter than 8 bytes");
  }
  std::memcpy(&length, bytes.data(), kLengthBytes);
  bytes.remove_prefix(kLengthBytes);
  if (length > kMaxHeaderBytes || length > bytes.size()) {
    return Broken("a header of " + std::to_string(length) + " bytes");
  }
  Json header;
  if (!ParseJson(bytes.substr(0, length), header) || !header.is_object()) {
    return Broken("the header is not a JSON object with unique keys, at most " +
                  std::to_string(kMostMembers) + " of each object");
  }
  const std::string_view data = bytes.substr(length);
  TensorFile file;
  std::vector<Entry> entries;
  for (const auto& [name, json] : header.items()) {
    if (name == kMetadata) {
      ADAMANT_ASSIGN_OR_RETURN(file.metadata, ParseMetadata(json));
    } else {
      ADAMANT_ASSIGN_OR_RETURN(Entry entry, ParseEntry(name, json));
      entries.push_back(std::move(entry));
    }
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  ADAMANT_RETURN_IF_ERROR(CheckCover(entries, data.size()));
  for (Entry& entry : entries) {
    const std::string_view raw = data.substr(entry.begin, entry.end - entry.begin);
    Tensor tensor{std::move(entry.name), std::move(entry.shape), {}};
    tensor.values.resize(raw.size() / sizeof(float));
    std::copy(raw.begin(), raw.end(), reinterpret_cast<char*>(tensor.values.data()));
    file.tensors.push_back(std::move(tensor));
  }
  ADAMANT_RETURN_IF_ERROR(CheckWhole(std::move(header), file));
  return file;
}

absl::Status WriteSafetensors(const std::filesystem::path& path,
                              const std::vector<TensorView>& tensors,
                              const Metadata& metadata,
                              Pipes pipes) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, EncodeSafetensors(tensors, metadata));
  return WriteFile(path, bytes, pipes);
}

absl::StatusOr<TensorFile> ReadSafetensors(const std::filesystem::path& path,
                                           std::uint64_t max_bytes,
                                           Pipes pipes) {
  ADAMANT_ASSIGN_OR_RETURN(const std::string bytes, ReadFile(path, max_bytes, pipes));
  absl::StatusOr<TensorFile> file = DecodeSafetensors(bytes);
  if (!file.ok()) {
    return absl::Status(file.status().code(),
                        path.string() + ": " + std::string(file.status().message()));
  }
  return file;
}

}  // namespace adamant::exports
