const express = require('express')

express().get('/', (request, response) => response.send(`hello from yarn-pnp, pid ${process.pid}`)).listen(process.env.PORT)
