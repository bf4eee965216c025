// A control server by itself, of the job "mine": prints its address, and a line for every member
// that joins, until its input ends.
#include <iostream>
#include <string>
#include <variant>

#include "operator/control/control_server.h"
#include "proto/adamant/v1/job.pb.h"

int main() {
  const auto server = adamant::control::StartControlServer("127.0.0.1:0");
  if (!server.ok()) {
    return 1;
  }
  std::cout << (*server)->address() << std::endl;
  (*server)->AddJob("mine",
                    adamant::control::StreamSecurity::kPlain,
                    {},
                    "/data",
                    [](const adamant::controller::Event& event) {
                      const auto* received = std::get_if<adamant::controller::Received>(&event);
                      if (received != nullptr &&
                          std::holds_alternative<adamant::controller::Join>(received->message)) {
                        std::cout << "joined" << std::endl;
                      }
                    });
  for (std::string line; std::getline(std::cin, line);) {
  }
  (*server)->Stop();
  return 0;
}
