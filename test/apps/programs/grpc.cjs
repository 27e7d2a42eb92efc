const path = require('node:path')
const { setTimeout: sleep } = require('node:timers/promises')
const grpc = require('@grpc/grpc-js')
const protoLoader = require('@grpc/proto-loader')

const { hello } = grpc.loadPackageDefinition(protoLoader.loadSync(path.join(__dirname, 'hello.proto')))
const greet = ({ request: { name } }) => ({ message: `hello ${name}, pid ${process.pid}` })

const server = new grpc.Server()
server.addService(hello.Greeter.service, {
  sayHello: (call, reply) => reply(null, greet(call)),
  sayHelloOften: async (call) => {
    for (let times = 0; times < 5; times++) {
      call.write(greet(call))
      await sleep(10)
    }
    call.end()
  }
})
server.bindAsync(`127.0.0.1:${process.env.PORT}`, grpc.ServerCredentials.createInsecure(), (error) => { if (error) throw error })
