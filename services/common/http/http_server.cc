#include "services/common/http/http_server.h"

#include <microhttpd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "services/common/base/status_macros.h"
#include "services/common/base/system/listen.h"

namespace adamant::http {
namespace {

constexpr std::size_t kConnections = 256;
// More than are kept: the library stops accepting at its own limit, and would not tell of the one
// that is to replace another.
constexpr unsigned kLibraryConnections = 2 * kConnections;
constexpr unsigned kSilentSeconds = 10;
constexpr std::size_t kConnectionBytes = 8 << 10;

MHD_Result Queue(MHD_Connection* connection, const Response& response) {
  MHD_Response* const message = MHD_create_response_from_buffer(
      response.body.size(), const_cast<char*>(response.body.data()), MHD_RESPMEM_MUST_COPY);
  if (message == nullptr) {
    return MHD_NO;  // no memory: the connection is closed
  }
  MHD_add_response_header(message, MHD_HTTP_HEADER_CONTENT_TYPE, response.content_type.c_str());
  const MHD_Result queued =
      MHD_queue_response(connection, static_cast<unsigned>(response.code), message);
  MHD_destroy_response(message);
  return queued;
}

MHD_Result AddArgument(void* request, MHD_ValueKind /*kind*/, const char* name, const char* value) {
  static_cast<Request*>(request)->arguments.emplace(name, value == nullptr ? "" : value);
  return MHD_YES;
}

}  // namespace

// The library's daemon. All callbacks run on its one thread.
class HttpServer::Daemon {
 public:
  explicit Daemon(Handler handler) : handler_(std::move(handler)) {}

  ~Daemon() {
    if (daemon_ != nullptr) {
      MHD_stop_daemon(daemon_);  // joins its thread, and closes the sockets
    }
  }

  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  absl::Status Start(const std::string& address) {
    ADAMANT_ASSIGN_OR_RETURN(const Listener listener, Listen(address));
    address_ = listener.address;
    daemon_ = MHD_start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD,
                               0,
                               nullptr,
                               nullptr,
                               OnRequest,
                               this,
                               MHD_OPTION_LISTEN_SOCKET,
                               listener.socket,
                               MHD_OPTION_CONNECTION_LIMIT,
                               kLibraryConnections,
                               MHD_OPTION_CONNECTION_TIMEOUT,
                               kSilentSeconds,
                               MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                               kConnectionBytes,
                               MHD_OPTION_NOTIFY_CONNECTION,
                               OnConnection,
                               this,
                               MHD_OPTION_END);
    if (daemon_ == nullptr) {
      close(listener.socket);
      throw std::system_error(std::make_error_code(std::errc::resource_unavailable_try_again),
                              "cannot serve HTTP at " + address_);
    }
    return absl::OkStatus();
  }

  [[nodiscard]] const std::string& address() const { return address_; }

 private:
  // NOLINTNEXTLINE(readability-function-size): the library's signature
  static MHD_Result OnRequest(void* self,
                              MHD_Connection* connection,
                              const char* path,
                              const char* method,
                              const char* /*version*/,
                              const char* /*body*/,
                              std::size_t* /*body_size*/,
                              void** /*request*/) {
    if (std::string_view(method) != MHD_HTTP_METHOD_GET &&
        std::string_view(method) != MHD_HTTP_METHOD_HEAD) {
      return Queue(connection, {.code = MHD_HTTP_METHOD_NOT_ALLOWED, .body = "GET only\n"});
    }
    Request request{.path = path};
    MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, AddArgument, &request);
    return Queue(connection, static_cast<Daemon*>(self)->handler_(request));
  }

  static void OnConnection(void* self,
                           MHD_Connection* connection,
                           void** /*context*/,
                           MHD_ConnectionNotificationCode code) {
    const int socket =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    auto& open = static_cast<Daemon*>(self)->open_;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      open.remove(socket);
      return;
    }
    if (open.size() == kConnections) {
      shutdown(open.front(), SHUT_RDWR);  // the library reads its end, and closes it
      open.pop_front();
    }
    open.push_back(socket);
  }

  const Handler handler_;
  std::string address_;
  std::list<int> open_;  // sockets, oldest first; of the daemon's thread
  MHD_Daemon* daemon_ = nullptr;
};

HttpServer::HttpServer(std::unique_ptr<Daemon> daemon) : daemon_(std::move(daemon)) {}

HttpServer::~HttpServer() = default;

const std::string& HttpServer::address() const { return daemon_->address(); }

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address,
                                                              Handler handler) {
  auto daemon = std::make_unique<Daemon>(std::move(handler));
  ADAMANT_RETURN_IF_ERROR(daemon->Start(address));
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(daemon)));
}

}  // namespace adamant::http
