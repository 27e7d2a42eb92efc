import com.google.protobuf.StringValue;
import io.grpc.MethodDescriptor;
import io.grpc.MethodDescriptor.MethodType;
import io.grpc.ServerBuilder;
import io.grpc.ServerServiceDefinition;
import io.grpc.protobuf.ProtoUtils;
import io.grpc.stub.ServerCalls;
import io.grpc.stub.StreamObserver;
import java.util.concurrent.TimeUnit;

// The service of hello.proto. On the wire its messages are those of StringValue, so no code has to be generated.
public class GrpcServer {
  public static void main(String[] args) throws Exception {
    var service = ServerServiceDefinition.builder("hello.Greeter")
      .addMethod(method(MethodType.UNARY, "SayHello"), ServerCalls.asyncUnaryCall((request, reply) -> greet(request, reply, 1)))
      .addMethod(method(MethodType.SERVER_STREAMING, "SayHelloOften"), ServerCalls.asyncServerStreamingCall((request, reply) -> greet(request, reply, 5)))
      .build();
    var server = ServerBuilder.forPort(Integer.parseInt(System.getenv("PORT"))).addService(service).build().start();
    Runtime.getRuntime().addShutdownHook(new Thread(() -> {
      try {
        server.shutdown().awaitTermination(5, TimeUnit.SECONDS);
      } catch (InterruptedException error) {
        server.shutdownNow();
      }
    }));
    server.awaitTermination();
  }

  static MethodDescriptor<StringValue, StringValue> method(MethodType type, String name) {
    var message = ProtoUtils.marshaller(StringValue.getDefaultInstance());
    return MethodDescriptor.<StringValue, StringValue>newBuilder(message, message).setType(type).setFullMethodName("hello.Greeter/" + name).build();
  }

  static void greet(StringValue name, StreamObserver<StringValue> reply, int times) {
    for (var time = 0; time < times; time++) reply.onNext(StringValue.of("hello " + name.getValue() + ", pid " + ProcessHandle.current().pid()));
    reply.onCompleted();
  }
}
