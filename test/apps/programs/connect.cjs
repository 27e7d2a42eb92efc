const connect = require('connect')

const app = connect()
app.use((request, response) => response.end(`hello from connect, pid ${process.pid}`))
app.listen(process.env.PORT)
