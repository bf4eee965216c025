#include "tests/fakes/kube/memory_api_server.h"

#include <algorithm>
#include <span>
#include <utility>

#include "services/common/base/status_macros.h"
#include "tests/fakes/kube/api_selector.h"

namespace adamant::kube {
namespace {

std::string Decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size()) {
      decoded += static_cast<char>(std::stoi(std::string(text.substr(i + 1, 2)), nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  while (!text.empty()) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return parts;
}

std::string ValueOf(const std::map<std::string, std::string>& query, const std::string& name) {
  const auto found = query.find(name);
  return found != query.end() ? found->second : "";
}

std::uint64_t NumberOf(const std::string& text) { return text.empty() ? 0 : std::stoull(text); }

std::pair<int, const char*> HttpOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kNotFound:
      return {404, "NotFound"};
    case absl::StatusCode::kAlreadyExists:
      return {409, "AlreadyExists"};
    case absl::StatusCode::kAborted:
      return {409, "Conflict"};
    case absl::StatusCode::kOutOfRange:
      return {410, "Expired"};
    default:
      return {422, "Invalid"};
  }
}

Json StatusObject(const absl::Status& status) {
  const auto [code, reason] = HttpOf(status.code());
  return {{"kind", "Status"},
          {"apiVersion", "v1"},
          {"status", "Failure"},
          {"code", code},
          {"reason", reason},
          {"message", std::string(status.message())}};
}

HttpResponse Refusal(const absl::Status& status) {
  return {
      .status = HttpOf(status.code()).first, .headers = {}, .body = StatusObject(status).dump()};
}

std::string EventLine(const char* type, const Json& object) {
  return Json{{"type", type}, {"object", object}}.dump();
}

std::string Bookmark(std::uint64_t version, bool initial) {
  Json metadata = {{"resourceVersion", std::to_string(version)}};
  if (initial) {
    metadata["annotations"]["k8s.io/initial-events-end"] = "true";
  }
  return EventLine("BOOKMARK", {{"metadata", metadata}});
}

bool Selected(const Json& object, const std::map<std::string, std::string>& query) {
  return !object.is_null() && MatchesLabels(object, ValueOf(query, "labelSelector")) &&
         MatchesFields(object, ValueOf(query, "fieldSelector"));
}

}  // namespace

absl::StatusOr<MemoryApiServer::Target> MemoryApiServer::Parse(std::string_view target) {
  Target result;
  const std::size_t question = target.find('?');
  if (question != std::string_view::npos) {
    for (const std::string& pair : Split(target.substr(question + 1), '&')) {
      const std::size_t equals = pair.find('=');
      result.query[pair.substr(0, equals)] = Decode(pair.substr(equals + 1));
    }
  }
  std::vector<std::string> parts = Split(target.substr(1, question - 1), '/');
  std::size_t at = !parts.empty() && parts[0] == "apis" ? 3 : 2;
  if (parts.size() <= at) {
    return absl::NotFoundError("the server could not find the requested resource");
  }
  result.place.resource = "/" + parts[0] + "/" + parts[1] + (at == 3 ? "/" + parts[2] : "") + "/";
  if (parts[at] == "namespaces" && parts.size() > at + 2) {
    result.place.key.ns = Decode(parts[at + 1]);
    at += 2;
  }
  result.place.resource += parts[at];
  result.place.key.name = parts.size() > at + 1 ? Decode(parts[at + 1]) : "";
  result.place.subresource = parts.size() > at + 2 ? parts[at + 2] : "";
  return result;
}

MemoryApiServer::Fault MemoryApiServer::FaultOf(const HttpRequest& request) {
  const MutexLock lock(mutex_);
  ++requests_;
  return faults_ ? faults_(request) : Fault::kNone;
}

absl::StatusOr<HttpResponse> MemoryApiServer::Send(const HttpRequest& request,
                                                   const Cancellation& cancellation) {
  if (cancellation.cancelled()) {
    return absl::CancelledError("cancelled");
  }
  const Fault fault = FaultOf(request);
  if (fault == Fault::kDelay && request.meanwhile) {
    request.meanwhile();
  }
  if (fault == Fault::kRefuse) {
    return absl::UnavailableError("connection refused");
  }
  if (fault == Fault::kInvalid) {
    return Refusal(absl::InvalidArgumentError("a field has a value that it must not have"));
  }
  const MutexLock lock(mutex_);
  if (std::optional<HttpResponse> answer = answers_ ? answers_(request) : std::nullopt) {
    return *std::move(answer);
  }
  const std::size_t before = store_.history().size();
  absl::StatusOr<HttpResponse> response = Handle(request);
  TellSince(before);
  if (fault == Fault::kLoseAnswer) {
    return absl::UnavailableError("connection reset by peer");
  }
  return response;
}

absl::StatusOr<Json> MemoryApiServer::CarryOut(const HttpRequest& request, const Target& target) {
  if (request.method == "GET") {
    return Read(target);
  }
  ADAMANT_ASSIGN_OR_RETURN(Json body, ParseJson(request.body.empty() ? "{}" : request.body));
  if (request.method == "POST") {
    return Post(target, std::move(body));
  }
  if (request.method == "PUT") {
    return store_.Update(target.place, std::move(body));
  }
  if (request.method == "PATCH") {
    return Patch(request, target, std::move(body));
  }
  return Delete(target, body);
}

absl::StatusOr<HttpResponse> MemoryApiServer::Handle(const HttpRequest& request) {
  if (request.target == "/readyz") {
    return HttpResponse{.status = 200, .headers = {}, .body = "ok"};
  }
  const absl::StatusOr<Target> target = Parse(request.target);
  const absl::StatusOr<Json> result = target.ok() ? CarryOut(request, *target) : target.status();
  if (!result.ok()) {
    return Refusal(result.status());
  }
  return HttpResponse{
      .status = request.method == "POST" ? 201 : 200, .headers = {}, .body = result->dump()};
}

absl::StatusOr<Json> MemoryApiServer::Read(const Target& target) const {
  return target.place.key.name.empty() ? List(target) : store_.Get(target.place);
}

absl::StatusOr<Json> MemoryApiServer::List(const Target& target) const {
  const std::uint64_t limit = NumberOf(ValueOf(target.query, "limit"));
  const std::string from = ValueOf(target.query, "continue");  // "<version>:<objects before>"
  const std::uint64_t skip = from.empty() ? 0 : NumberOf(from.substr(from.find(':') + 1));
  const std::uint64_t version =
      from.empty() ? store_.version() : NumberOf(from.substr(0, from.find(':')));
  if (version < store_.compacted()) {
    return absl::OutOfRangeError("The provided continue parameter is too old");
  }
  Json items = Json::array();
  Json metadata = {{"resourceVersion", std::to_string(version)}};
  std::uint64_t index = 0;
  for (const Json* object : store_.List(target.place)) {
    if (!Selected(*object, target.query) || index++ < skip) {
      continue;
    }
    if (limit != 0 && items.size() == limit) {
      metadata["continue"] = std::to_string(version) + ":" + std::to_string(skip + limit);
      break;
    }
    items.push_back(*object);
  }
  return Json{{"kind", "List"}, {"metadata", metadata}, {"items", items}};
}

absl::StatusOr<Json> MemoryApiServer::Post(const Target& target, Json body) {
  if (target.place.subresource == "eviction") {
    const Json* options = Find(body, {"deleteOptions"});
    return store_.Delete(target.place, options != nullptr ? *options : Json::object());
  }
  if (ValueOf(target.query, "dryRun") == "All") {
    return body;
  }
  return store_.Create(target.place, std::move(body));
}

absl::StatusOr<Json> MemoryApiServer::Patch(const HttpRequest& request,
                                            const Target& target,
                                            Json patch) {
  const auto type = request.headers.find("content-type");
  const std::string kind = type != request.headers.end() ? type->second : "";
  if (kind.starts_with("application/apply-patch")) {
    return store_.Apply(target.place, ValueOf(target.query, "fieldManager"), std::move(patch));
  }
  ADAMANT_ASSIGN_OR_RETURN(Json object, store_.Get(target.place));
  if (kind.starts_with("application/json-patch")) {
    try {
      object = object.patch(patch);
    } catch (const Json::exception& error) {
      return absl::InvalidArgumentError(error.what());
    }
  } else {
    object.merge_patch(patch);
  }
  return store_.Update(target.place, std::move(object));
}

absl::StatusOr<Json> MemoryApiServer::Delete(const Target& target, const Json& options) {
  if (!target.place.key.name.empty()) {
    return store_.Delete(target.place, options);
  }
  std::vector<ObjectKey> keys;
  for (const Json* object : store_.List(target.place)) {
    if (Selected(*object, target.query)) {
      keys.push_back(KeyOf(*object));
    }
  }
  for (ObjectKey& key : keys) {
    ADAMANT_RETURN_IF_ERROR(
        store_.Delete({target.place.resource, std::move(key), ""}, options).status());
  }
  return Json{{"kind", "Status"}, {"status", "Success"}};
}

absl::StatusOr<HttpResponse> MemoryApiServer::Stream(
    const HttpRequest& request,
    std::chrono::milliseconds /*idle*/,
    const std::function<bool(std::string_view line)>& on_line,
    const Cancellation& cancellation) {
  ADAMANT_ASSIGN_OR_RETURN(const Target target, Parse(request.target));
  const auto guard = cancellation.OnCancel([this] {
    const MutexLock lock(mutex_);
    changed_.NotifyAll();
  });
  mutex_.Lock();
  const std::uint64_t cuts = cuts_;
  const Fault fault = faults_ ? faults_(request) : Fault::kNone;
  std::uint64_t seen = 0;
  std::vector<std::string> lines = FirstLines(target, seen);
  absl::Status end;
  while (true) {
    mutex_.Unlock();
    const bool wanted = fault == Fault::kNone && std::all_of(lines.begin(), lines.end(), on_line);
    const bool cancelled = cancellation.cancelled();
    mutex_.Lock();
    if (fault != Fault::kNone || cuts_ != cuts) {
      end = absl::UnavailableError("connection reset by peer");
    } else if (cancelled) {
      end = absl::CancelledError("cancelled");
    }
    if (!wanted || !live_ || !end.ok()) {
      break;
    }
    lines = NextLines(target, seen);
    if (lines.empty()) {
      changed_.Wait(mutex_);
    }
  }
  mutex_.Unlock();
  ADAMANT_RETURN_IF_ERROR(end);
  return HttpResponse{.status = 200};
}

std::vector<std::string> MemoryApiServer::FirstLines(const Target& target,
                                                     std::uint64_t& seen) const {
  std::vector<std::string> lines;
  if (ValueOf(target.query, "sendInitialEvents") == "true") {
    for (const Json* object : store_.List(target.place)) {
      if (Selected(*object, target.query)) {
        lines.push_back(EventLine("ADDED", *object));
      }
    }
    seen = store_.version();
    lines.push_back(Bookmark(seen, true));
    return lines;
  }
  seen = NumberOf(ValueOf(target.query, "resourceVersion"));
  if (seen < store_.compacted()) {
    return {EventLine("ERROR", StatusObject(absl::OutOfRangeError("too old resource version")))};
  }
  lines = NextLines(target, seen);
  if (!live_) {
    lines.push_back(Bookmark(seen, false));
  }
  return lines;
}

std::vector<std::string> MemoryApiServer::NextLines(const Target& target,
                                                    std::uint64_t& seen) const {
  std::vector<std::string> lines;
  const std::uint64_t horizon = std::min(horizon_, store_.version());
  const auto& history = store_.history();
  const auto first = std::upper_bound(
      history.begin(), history.end(), seen, [](std::uint64_t version, const auto& change) {
        return version < change.version;
      });
  for (const MemoryApiStore::Change& change : std::span(first, history.end())) {
    if (change.version > horizon) {
      break;
    }
    const Json& shown = change.before.is_null() ? change.after : change.before;
    const bool ours = change.resource == target.place.resource &&
                      (target.place.key.ns.empty() || KeyOf(shown).ns == target.place.key.ns);
    if (!ours) {
      continue;
    }
    const bool was = Selected(change.before, target.query);
    const bool is = Selected(change.after, target.query);
    if (is) {
      lines.push_back(EventLine(was ? "MODIFIED" : "ADDED", change.after));
    } else if (was) {
      lines.push_back(EventLine("DELETED", change.last.is_null() ? change.after : change.last));
    }
  }
  seen = std::max(seen, horizon);
  return lines;
}

void MemoryApiServer::SetFaults(std::function<Fault(const HttpRequest& request)> faults) {
  const MutexLock lock(mutex_);
  faults_ = std::move(faults);
}

void MemoryApiServer::SetAnswers(Answer answers) {
  const MutexLock lock(mutex_);
  answers_ = std::move(answers);
}

void MemoryApiServer::HoldWatches(std::uint64_t version) {
  const MutexLock lock(mutex_);
  horizon_ = version;
  changed_.NotifyAll();
}

void MemoryApiServer::ReleaseWatches() { HoldWatches(UINT64_MAX); }

void MemoryApiServer::CutWatches() {
  const MutexLock lock(mutex_);
  ++cuts_;
  changed_.NotifyAll();
}

void MemoryApiServer::Compact() {
  const MutexLock lock(mutex_);
  store_.Compact();
}

void MemoryApiServer::CollectGarbage() {
  const MutexLock lock(mutex_);
  const std::size_t before = store_.history().size();
  store_.CollectGarbage();
  TellSince(before);
}

void MemoryApiServer::SetObserver(
    std::function<void(const MemoryApiStore::Change& change)> observer) {
  const MutexLock lock(mutex_);
  observer_ = std::move(observer);
}

void MemoryApiServer::TellSince(std::size_t change) {
  if (change == store_.history().size()) {
    return;
  }
  changed_.NotifyAll();
  for (; observer_ && change < store_.history().size(); ++change) {
    observer_(store_.history()[change]);
  }
}

std::uint64_t MemoryApiServer::version() const {
  const MutexLock lock(mutex_);
  return store_.version();
}

std::uint64_t MemoryApiServer::requests() const {
  const MutexLock lock(mutex_);
  return requests_;
}

}  // namespace adamant::kube
