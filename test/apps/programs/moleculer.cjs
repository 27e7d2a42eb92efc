const { ServiceBroker } = require('moleculer')
const ApiService = require('moleculer-web')

const broker = new ServiceBroker({ logger: false })
broker.createService({ mixins: [ApiService], settings: { port: process.env.PORT, routes: [{ path: '/', aliases: { 'GET /': 'greeter.hello' } }] } })
broker.createService({ name: 'greeter', actions: { hello: () => `hello from moleculer, pid ${process.pid}` } })
broker.start()
