const net = require('node:net')
const { Aedes } = require('aedes')

async function start () {
  const aedes = typeof Aedes.createBroker === 'function' ? await Aedes.createBroker() : new Aedes()
  net.createServer(aedes.handle).listen(process.env.PORT)
}

start()
