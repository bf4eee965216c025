// What the containers of the test cluster's own tests do. Without arguments: nothing, until told to
// end; that is what the first container of every pod does.
#include <arpa/inet.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void End(int signal) {
  (void)signal;
  _exit(0);
}

// Sends its host's name to all who connect to the port.
static int Serve(int port) {
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
  int listener = socket(AF_INET, SOCK_STREAM, 0);
  if (bind(listener, (struct sockaddr*)&address, sizeof address) != 0 ||
      listen(listener, 16) != 0) {
    perror("serve");
    return 1;
  }
  printf("%s serves port %d\n", name, port);
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (write(connection, name, strlen(name)) < 0) perror("serve");
    close(connection);
  }
}

// Prints what a server says that was found by its name.
static int Ask(const char* host, const char* port) {
  struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM};
  struct addrinfo* found = NULL;
  int error = getaddrinfo(host, port, &hints, &found);
  if (error != 0) {
    fprintf(stderr, "ask: %s: %s\n", host, gai_strerror(error));
    return 1;
  }
  int connection = socket(AF_INET, SOCK_STREAM, 0);
  char answer[256] = "";
  if (connect(connection, found->ai_addr, found->ai_addrlen) != 0 ||
      read(connection, answer, sizeof answer - 1) <= 0) {
    perror("ask");
    return 1;
  }
  printf("%s answers\n", answer);
  return 0;
}

// Adds a line to a file and prints all of it.
static int Note(const char* path, const char* line) {
  FILE* file = fopen(path, "a+");
  if (file == NULL) {
    perror(path);
    return 1;
  }
  fprintf(file, "%s\n", line);
  rewind(file);
  for (int c; (c = fgetc(file)) != EOF;) putchar(c);
  return fclose(file);
}

int main(int argc, char** argv) {
  signal(SIGTERM, End);
  signal(SIGINT, End);
  signal(SIGCHLD, SIG_IGN);
  setlinebuf(stdout);
  if (argc == 3 && strcmp(argv[1], "serve") == 0) return Serve(atoi(argv[2]));
  if (argc == 4 && strcmp(argv[1], "ask") == 0) return Ask(argv[2], argv[3]);
  if (argc == 4 && strcmp(argv[1], "note") == 0) return Note(argv[2], argv[3]);
  for (;;) pause();
}
