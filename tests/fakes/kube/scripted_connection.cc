#include "tests/fakes/kube/scripted_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/x509.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace adamant::fakes {
namespace {

std::string ClientOf(SSL* ssl) {
  const std::unique_ptr<X509, decltype(&X509_free)> certificate(SSL_get1_peer_certificate(ssl),
                                                                &X509_free);
  char name[256] = "";
  if (certificate) {
    X509_NAME_get_text_by_NID(
        X509_get_subject_name(certificate.get()), NID_commonName, name, sizeof(name));
  }
  return name;
}

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) {
    return static_cast<char>(std::tolower(c));
  });
  return text;
}

ReceivedRequest ParseHead(const std::string& head) {
  ReceivedRequest request;
  std::istringstream lines(head);
  lines >> request.method >> request.target;
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) {
    const std::size_t colon = line.find(':');
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    if (colon != std::string::npos && value != std::string::npos) {
      request.headers[LowerCase(line.substr(0, colon))] =
          line.substr(value, line.find('\r') - value);
    }
  }
  return request;
}

}  // namespace

ScriptedConnection::ScriptedConnection(int descriptor, SSL_CTX* context, int number)
    : descriptor_(descriptor),
      number_(number),
      ssl_(context == nullptr ? nullptr : SSL_new(context), &SSL_free) {
  const int on = 1;
  setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (ssl_) {
    SSL_set_fd(ssl_.get(), descriptor_);
  }
}

ScriptedConnection::~ScriptedConnection() { close(descriptor_); }

bool ScriptedConnection::Accept() { return !ssl_ || SSL_accept(ssl_.get()) == 1; }

bool ScriptedConnection::ReadMore() {
  char block[16384];
  const long count = ssl_ ? SSL_read(ssl_.get(), block, sizeof(block))
                          : recv(descriptor_, block, sizeof(block), 0);
  if (count > 0) {
    buffer_.append(block, static_cast<std::size_t>(count));
  }
  return count > 0;
}

std::optional<ReceivedRequest> ScriptedConnection::ReadRequest() {
  std::size_t end = std::string::npos;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!ReadMore()) {
      return std::nullopt;
    }
  }
  ReceivedRequest request = ParseHead(buffer_.substr(0, end + 2));
  buffer_.erase(0, end + 4);
  const auto length = request.headers.find("content-length");
  const std::size_t size = length == request.headers.end() ? 0 : std::stoul(length->second);
  while (buffer_.size() < size) {
    if (!ReadMore()) {
      return std::nullopt;
    }
  }
  request.body = buffer_.substr(0, size);
  buffer_.erase(0, size);
  request.connection = number_;
  if (ssl_) {
    request.client = ClientOf(ssl_.get());
    const char* name = SSL_get_servername(ssl_.get(), TLSEXT_NAMETYPE_host_name);
    request.server_name = name == nullptr ? "" : name;
  }
  return request;
}

bool ScriptedConnection::Write(const std::string& bytes) {
  std::size_t written = 0;
  while (written < bytes.size()) {
    const auto size = static_cast<int>(std::min<std::size_t>(bytes.size() - written, 1U << 20));
    const long count = ssl_ ? SSL_write(ssl_.get(), bytes.data() + written, size)
                            : send(descriptor_, bytes.data() + written, size, MSG_NOSIGNAL);
    if (count <= 0) {
      return false;
    }
    written += static_cast<std::size_t>(count);
  }
  return true;
}

void ScriptedConnection::WaitForClose() {
  while (ReadMore()) {
    buffer_.clear();
  }
}

void ScriptedConnection::Close() {
  if (ssl_) {
    SSL_shutdown(ssl_.get());
  }
  Shutdown();
}

void ScriptedConnection::Reset() {
  const linger hard{.l_onoff = 1, .l_linger = 0};  // closing sends RST
  setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

void ScriptedConnection::Shutdown() { shutdown(descriptor_, SHUT_RDWR); }

}  // namespace adamant::fakes
