#include "services/common/fetch/transfer.h"

#include <curl/curl.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

#include "services/common/base/check.h"

namespace adamant::fetch {
namespace {

constexpr long kMaxRedirects = 5;
constexpr long kPartialContent = 206;
constexpr long kRangeNotSatisfiable = 416;
constexpr curl_off_t kLongestRetryAfter = 86'400;  // seconds

// A transfer in progress: the target of libcurl's callbacks.
struct Call {
  CURL* curl = nullptr;
  const TransferRequest& request;
  TransferSink& sink;
  bool begun = false;
  bool cancelled = false;
  absl::Status status{};  // of the sink
};

template <class T>
T InfoOf(CURL* curl, CURLINFO info) {
  T value{};
  curl_easy_getinfo(curl, info, &value);
  return value;
}

// "bytes 100-199/200": the first number and the last. Nothing for what does not look like that.
struct ContentRange {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> total;
};

std::optional<ContentRange> ContentRangeOf(CURL* curl) {
  curl_header* header = nullptr;
  if (curl_easy_header(curl, "Content-Range", 0, CURLH_HEADER, -1, &header) != CURLHE_OK) {
    return std::nullopt;
  }
  std::string_view text = header->value;
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) {
    return std::nullopt;
  }
  text.remove_prefix(kUnit.size());
  ContentRange range;
  if (std::from_chars(text.data(), text.data() + text.size(), range.first).ec != std::errc()) {
    return std::nullopt;
  }
  const std::size_t slash = text.find('/');
  if (slash != std::string_view::npos) {
    std::uint64_t total = 0;
    const std::string_view number = text.substr(slash + 1);
    if (std::from_chars(number.data(), number.data() + number.size(), total).ec == std::errc()) {
      range.total = total;
    }
  }
  return range;
}

// The response's head is complete: tells the sink what follows.
absl::Status Begin(Call& call) {
  call.begun = true;
  if (InfoOf<long>(call.curl, CURLINFO_RESPONSE_CODE) == kPartialContent) {
    const std::optional<ContentRange> range = ContentRangeOf(call.curl);
    if (!range || range->first != call.request.offset) {
      return absl::InvalidArgumentError("the server answers with another range than was asked for");
    }
    return call.sink.Begin(call.request.offset, range->total);
  }
  const auto length = InfoOf<curl_off_t>(call.curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T);
  return call.sink.Begin(
      0, length >= 0 ? std::optional(static_cast<std::uint64_t>(length)) : std::nullopt);
}

std::size_t OnBytes(char* bytes, std::size_t /*one*/, std::size_t count, void* target) {
  Call& call = *static_cast<Call*>(target);
  if (!call.begun) {
    call.status = Begin(call);
  }
  if (call.status.ok()) {
    call.status = call.sink.Append({bytes, count});
  }
  return call.status.ok() ? count : CURL_WRITEFUNC_ERROR;
}

int OnProgress(void* target, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  Call& call = *static_cast<Call*>(target);
  call.cancelled = !call.sink.GoOn();
  return call.cancelled ? 1 : 0;
}

// Answers that another try will not change; 408, 425 and 429 ask for one.
bool IsFinal(long status) {
  return status >= 400 && status < 500 && status != 408 && status != 425 && status != 429;
}

absl::Status HttpError(long status) {
  const std::string text = "the server answers with HTTP status " + std::to_string(status);
  return IsFinal(status) ? absl::InvalidArgumentError(text) : absl::UnavailableError(text);
}

absl::Status CurlError(CURLcode code, const std::string& detail) {
  const std::string text = detail.empty() ? curl_easy_strerror(code) : detail;
  switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
      return absl::InvalidArgumentError("the server's certificate is not trusted: " + text);
    case CURLE_TOO_MANY_REDIRECTS:
      return absl::InvalidArgumentError("more than " + std::to_string(kMaxRedirects) +
                                        " redirections");
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_LOGIN_DENIED:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_BAD_CONTENT_ENCODING:
      return absl::InvalidArgumentError(text);
    default:
      return absl::UnavailableError(text);
  }
}

absl::Status StatusOf(const Call& call, CURLcode code, const std::string& detail) {
  if (!call.status.ok()) {
    return call.status;
  }
  if (call.cancelled) {
    return absl::CancelledError("the transfer was ended");
  }
  if (code == CURLE_OK) {
    return absl::OkStatus();
  }
  return code == CURLE_HTTP_RETURNED_ERROR
             ? HttpError(InfoOf<long>(call.curl, CURLINFO_RESPONSE_CODE))
             : CurlError(code, detail);
}

template <class T>
void Set(CURL* curl, CURLoption option, T value) {
  ADAMANT_CHECK(curl_easy_setopt(curl, option, value) == CURLE_OK, "libcurl knows this option");
}

void SetOptions(const TransferRequest& request, Call& call) {
  CURL* const curl = call.curl;
  const bool encrypted = request.url.starts_with("https:");
  Set(curl, CURLOPT_URL, request.url.c_str());
  Set(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  Set(curl, CURLOPT_REDIR_PROTOCOLS_STR, encrypted ? "https" : "http,https");
  Set(curl, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  Set(curl, CURLOPT_FOLLOWLOCATION, 1L);
  Set(curl, CURLOPT_MAXREDIRS, kMaxRedirects);
  Set(curl, CURLOPT_FAILONERROR, 1L);
  Set(curl, CURLOPT_NOSIGNAL, 1L);
  Set(curl, CURLOPT_USERAGENT, "adamant");
  Set(curl, CURLOPT_CONNECTTIMEOUT, static_cast<long>(request.connect_timeout.count()));
  Set(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
  Set(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(request.stall_timeout.count()));
  if (!request.authorities.empty()) {
    Set(curl, CURLOPT_CAINFO, request.authorities.c_str());
  }
  if (request.offset > 0) {
    Set(curl, CURLOPT_RANGE, (std::to_string(request.offset) + "-").c_str());  // it is copied
  }
  Set(curl, CURLOPT_WRITEFUNCTION, &OnBytes);
  Set(curl, CURLOPT_WRITEDATA, &call);
  Set(curl, CURLOPT_NOPROGRESS, 0L);
  Set(curl, CURLOPT_XFERINFOFUNCTION, &OnProgress);
  Set(curl, CURLOPT_XFERINFODATA, &call);
}

}  // namespace

TransferResult Transfer(const TransferRequest& request, TransferSink& sink) {
  static const CURLcode kStarted = curl_global_init(CURL_GLOBAL_DEFAULT);
  ADAMANT_CHECK(kStarted == CURLE_OK, "libcurl cannot start");
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  ADAMANT_CHECK(curl != nullptr, "libcurl cannot start");
  std::array<char, CURL_ERROR_SIZE> detail = {};
  Call call{.curl = curl.get(), .request = request, .sink = sink};
  SetOptions(request, call);
  Set(curl.get(), CURLOPT_ERRORBUFFER, detail.data());
  const CURLcode code = curl_easy_perform(curl.get());
  TransferResult result{.status = StatusOf(call, code, detail.data())};
  if (result.status.ok() && !call.begun) {  // an empty file
    result.status = Begin(call);
  }
  result.out_of_range = code == CURLE_HTTP_RETURNED_ERROR &&
                        InfoOf<long>(call.curl, CURLINFO_RESPONSE_CODE) == kRangeNotSatisfiable;
  if (const auto wait = InfoOf<curl_off_t>(call.curl, CURLINFO_RETRY_AFTER); wait > 0) {
    result.retry_after = std::chrono::seconds(std::min(wait, kLongestRetryAfter));
  }
  return result;
}

}  // namespace adamant::fetch
