#pragma once

#include <string>

namespace adamant::http {

/// A connection to a server on this machine, as a client of few manners has it. Closes itself.
class Connection {
 public:
  /// `address`: 127.0.0.1:PORT or [::1]:PORT.
  explicit Connection(const std::string& address);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void Send(const std::string& text) const;

  /// All that comes until the server closes, or nothing has come for half a minute.
  [[nodiscard]] std::string ReadToEnd() const;

 private:
  int socket_;
};

/// The whole reply to GET `path`.
std::string Get(const std::string& address, const std::string& path);

}  // namespace adamant::http
