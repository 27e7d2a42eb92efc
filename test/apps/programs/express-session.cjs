const express = require('express')
const session = require('express-session')

const app = express()
app.use(session({ secret: 'gallery', resave: false, saveUninitialized: true }))
app.get('/', (request, response) => {
  request.session.visits = (request.session.visits ?? 0) + 1
  response.send(`hello for the ${request.session.visits}th time, pid ${process.pid}`)
})
app.listen(process.env.PORT)
