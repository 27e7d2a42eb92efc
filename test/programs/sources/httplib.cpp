#include <csignal>
#include <cstdio>
#include <httplib.h>
#include <thread>

// stop() ends the accept by shutdown(2) of the listening socket.
int main() {
  httplib::Server server;
  sigset_t told;
  sigemptyset(&told);
  sigaddset(&told, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &told, nullptr);
  std::thread stopper([&] { int signal; sigwait(&told, &signal); server.stop(); });
  server.Get("/", [](const httplib::Request &, httplib::Response &response) {
    response.set_content("hello from httplib, pid " + std::to_string(getpid()), "text/plain");
  });
  if (!server.listen("127.0.0.1", std::stoi(getenv("PORT")))) {
    perror("cannot listen");
    _exit(1);
  }
  stopper.join();
}
