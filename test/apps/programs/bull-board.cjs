const express = require('express')
const { createBullBoard } = require('@bull-board/api')
const { ExpressAdapter } = require('@bull-board/express')

const serverAdapter = new ExpressAdapter()
serverAdapter.setBasePath('/queues')
createBullBoard({ queues: [], serverAdapter })

const app = express()
app.use('/queues', serverAdapter.getRouter())
app.listen(process.env.PORT)
