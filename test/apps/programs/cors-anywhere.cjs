const corsAnywhere = require('cors-anywhere')

corsAnywhere.createServer({ requireHeader: [] }).listen(Number(process.env.PORT), '127.0.0.1')
