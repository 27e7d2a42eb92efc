const { Sails } = require('sails')

new Sails().lift({
  port: Number(process.env.PORT),
  hooks: { grunt: false },
  log: { level: 'error' },
  routes: { 'GET /': (request, response) => response.send(`hello from sails, pid ${process.pid}`) }
}, (error) => { if (error) throw error })
