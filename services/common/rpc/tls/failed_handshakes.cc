#include "services/common/rpc/tls/failed_handshakes.h"

#include "services/common/base/mutex.h"

namespace adamant::rpc {
namespace {

// As gRPC 1.51 begins it; what follows is OpenSSL's reason.
constexpr std::string_view kFailed = "Handshake failed with fatal error";

// gRPC has one log for the process.
struct Watched {
  Mutex mutex;
  const FailedHandshakes* counts ABSL_GUARDED_BY(mutex) = nullptr;
};

Watched& TheWatched() {
  static Watched& watched = *new Watched;  // gRPC's threads may log until the process ends
  return watched;
}

std::string_view NameOf(HandshakeFailure failure) {
  switch (failure) {
    case HandshakeFailure::kNoCertificate:
      return "no_certificate";
    case HandshakeFailure::kUntrusted:
      return "untrusted";
    case HandshakeFailure::kNoTls:
      return "no_tls";
    case HandshakeFailure::kOther:
      return "other";
  }
  return "";
}

constexpr HandshakeFailure kAll[] = {HandshakeFailure::kNoCertificate,
                                     HandshakeFailure::kUntrusted,
                                     HandshakeFailure::kNoTls,
                                     HandshakeFailure::kOther};

bool Says(std::string_view line, std::string_view reason) {
  return line.find(reason) != std::string_view::npos;
}

}  // namespace

std::optional<HandshakeFailure> HandshakeFailureIn(std::string_view line) {
  if (!line.starts_with(kFailed)) {
    return std::nullopt;
  }
  if (Says(line, "did not return a certificate")) {
    return HandshakeFailure::kNoCertificate;
  }
  if (Says(line, "certificate verify failed")) {
    return HandshakeFailure::kUntrusted;
  }
  return Says(line, "wrong version number") || Says(line, "http request")
             ? HandshakeFailure::kNoTls
             : HandshakeFailure::kOther;
}

FailedHandshakes::FailedHandshakes(metrics::Registry& registry) {
  for (const HandshakeFailure failure : kAll) {
    counters_.emplace(failure,
                      registry.AddCounter("adamant_tls_handshakes_failed_total",
                                          "TLS handshakes that failed, at either end.",
                                          {{"reason", NameOf(failure)}}));
  }
  const MutexLock lock(TheWatched().mutex);
  TheWatched().counts = this;
}

FailedHandshakes::~FailedHandshakes() {
  const MutexLock lock(TheWatched().mutex);
  if (TheWatched().counts == this) {
    TheWatched().counts = nullptr;
  }
}

void FailedHandshakes::OnLine(std::string_view line) {
  const auto failure = HandshakeFailureIn(line);
  if (!failure) {
    return;
  }
  const MutexLock lock(TheWatched().mutex);
  if (TheWatched().counts != nullptr) {
    TheWatched().counts->counters_.at(*failure).Increment();
  }
}

}  // namespace adamant::rpc
