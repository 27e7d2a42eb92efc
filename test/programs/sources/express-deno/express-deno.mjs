import express from 'express'
import process from 'node:process'

express().get('/', (_request, response) => response.send(`hello from express, pid ${process.pid}`)).listen(process.env.PORT)
