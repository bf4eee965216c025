#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "operator/kube_client/base/json.h"
#include "operator/kube_client/base/transport.h"

namespace adamant::kube {

/// Returns what the API answered, as a status. The message is "<what>: <the API's message>", with
/// the fields that it refused.
///
///   NotFound            404
///   AlreadyExists       409 with reason AlreadyExists
///   Aborted             409 otherwise: another resourceVersion or uid than was asked for
///   OutOfRange          410: the resourceVersion or the continuation is too old
///   InvalidArgument     400, 413, 422
///   Unauthenticated     401
///   PermissionDenied    403
///   Unimplemented       405, 406, 415
///   ResourceExhausted   429
///   DeadlineExceeded    504
///   Unavailable         other 5xx
///   Unknown             anything else that is not 2xx
absl::Status StatusOf(const HttpResponse& response, std::string_view what);

/// The same, of an object of kind Status: how a watch says that it has failed. A code of 5xx is
/// Internal here: the server is there, but cannot watch.
absl::Status StatusOfErrorEvent(const Json& status, std::string_view what);

/// Returns true if a request was answered, or was not even sent for what is wrong with it; else
/// nothing is known of it but that no answer came.
bool IsAnswer(const absl::Status& status);

/// The API's own words: the message of StatusOf without its "POST /api/v1/…: ".
std::string WordsOf(const absl::Status& status);

}  // namespace adamant::kube
