import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.util.concurrent.Executors;

public class Server {
  public static void main(String[] args) throws Exception {
    var server = HttpServer.create(new InetSocketAddress(Integer.parseInt(System.getenv("PORT"))), 0);
    server.setExecutor(Executors.newFixedThreadPool(8));
    server.createContext("/", exchange -> {
      var body = ("hello from java, pid " + ProcessHandle.current().pid()).getBytes();
      exchange.sendResponseHeaders(200, body.length);
      try (var out = exchange.getResponseBody()) {
        out.write(body);
      }
    });
    Runtime.getRuntime().addShutdownHook(new Thread(() -> server.stop(1)));
    server.start();
  }
}
