const polka = require('polka')

polka().get('/', (request, response) => response.end(`hello from polka, pid ${process.pid}`)).listen(process.env.PORT)
