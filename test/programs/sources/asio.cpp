#include <asio.hpp>
#include <string>
#include <unistd.h>

using asio::ip::tcp;

const std::string body = "hello from asio, pid " + std::to_string(getpid());
const std::string answer = "HTTP/1.1 200 OK\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;

// The end of the connection is an exception, and ends it.
asio::awaitable<void> serve(tcp::socket socket) {
  std::string question;
  for (;;) {
    question.erase(0, co_await asio::async_read_until(socket, asio::dynamic_buffer(question), "\r\n\r\n", asio::use_awaitable));
    co_await asio::async_write(socket, asio::buffer(answer), asio::use_awaitable);
  }
}

asio::awaitable<void> accept(tcp::acceptor acceptor) {
  for (;;) asio::co_spawn(acceptor.get_executor(), serve(co_await acceptor.async_accept(asio::use_awaitable)), asio::detached);
}

// The acceptor's socket is in the set of epoll before it is bound.
int main() {
  asio::io_context context(1);
  asio::co_spawn(context, accept({ context, { tcp::v4(), static_cast<unsigned short>(std::stoi(getenv("PORT"))) } }), asio::detached);
  context.run();
}
