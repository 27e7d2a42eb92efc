#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// One connection after the other, one answer each.
int main(void) {
  struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(atoi(getenv("PORT"))) };
  int listener = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (bind(listener, (struct sockaddr *) &address, sizeof address) != 0 || listen(listener, 511) != 0) {
    perror("cannot listen");
    return 1;
  }
  char body[64], answer[256], question[4096];
  int bodyLength = snprintf(body, sizeof body, "hello from c, pid %d", getpid());
  int length = snprintf(answer, sizeof answer, "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", bodyLength, body);
  for (;;) {
    int client = accept(listener, NULL, NULL);
    if (client < 0) continue;
    if (read(client, question, sizeof question) > 0) write(client, answer, length);
    close(client);
  }
}
