import io.netty.bootstrap.ServerBootstrap;
import io.netty.buffer.Unpooled;
import io.netty.channel.*;
import io.netty.channel.epoll.*;
import io.netty.channel.socket.SocketChannel;
import io.netty.handler.codec.http.*;

// As its own examples have it: SIGTERM ends it at once. All of 4.1 adds the socket to epoll before it binds.
public class NettyServer {
  static final byte[] BODY = ("hello from netty, pid " + ProcessHandle.current().pid()).getBytes();

  public static void main(String[] args) {
    var group = new EpollEventLoopGroup(1);
    new ServerBootstrap().group(group).channel(EpollServerSocketChannel.class).childHandler(new ChannelInitializer<SocketChannel>() {
      protected void initChannel(SocketChannel channel) {
        channel.pipeline().addLast(new HttpServerCodec(), new HttpServerKeepAliveHandler(), new HttpObjectAggregator(65536), new Hello());
      }
    }).bind("127.0.0.1", Integer.parseInt(System.getenv("PORT"))).syncUninterruptibly();
  }

  static class Hello extends SimpleChannelInboundHandler<FullHttpRequest> {
    protected void channelRead0(ChannelHandlerContext context, FullHttpRequest request) {
      var response = new DefaultFullHttpResponse(HttpVersion.HTTP_1_1, HttpResponseStatus.OK, Unpooled.wrappedBuffer(BODY));
      HttpUtil.setContentLength(response, BODY.length);
      context.writeAndFlush(response);
    }
  }
}
