#pragma once

#include <openssl/ssl.h>

#include <memory>
#include <optional>
#include <string>

#include "tests/fakes/kube/scripted_api_server.h"

namespace adamant::fakes {

/// One connection of the scripted server: bytes by TLS or in clear, and requests out of them.
/// Threads: one, but Shutdown by any.
class ScriptedConnection {
 public:
  /// Owns the socket `descriptor`. `context`: null for a connection in clear.
  ScriptedConnection(int descriptor, SSL_CTX* context, int number);
  ~ScriptedConnection();
  ScriptedConnection(const ScriptedConnection&) = delete;
  ScriptedConnection& operator=(const ScriptedConnection&) = delete;

  /// TLS's handshake; false if it failed.
  bool Accept();
  /// The next request; nothing when the client has closed.
  std::optional<ReceivedRequest> ReadRequest();
  bool Write(const std::string& bytes);
  /// Returns when the client has closed, or Shutdown was called.
  void WaitForClose();
  /// Says farewell and closes.
  void Close();
  /// Closes by a reset.
  void Reset();
  /// Makes all calls return.
  void Shutdown();

 private:
  bool ReadMore();

  const int descriptor_;
  const int number_;
  std::unique_ptr<SSL, decltype(&SSL_free)> ssl_;
  std::string buffer_;  // received, not used yet
};

}  // namespace adamant::fakes
