const express = require('express')
const words = require('words')

express().get('/', (request, response) => response.send(`${words}, pid ${process.pid}`)).listen(process.env.PORT)
