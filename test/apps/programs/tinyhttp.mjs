import { App } from '@tinyhttp/app'

new App().get('/', (_request, response) => { response.send(`hello from tinyhttp, pid ${process.pid}`) }).listen(Number(process.env.PORT))
