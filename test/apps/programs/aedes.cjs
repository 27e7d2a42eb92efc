const net = require('node:net')
const { Aedes } = require('aedes')

Aedes.createBroker().then((aedes) => net.createServer(aedes.handle).listen(process.env.PORT))
