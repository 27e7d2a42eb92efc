const ldap = require('ldapjs')

const server = ldap.createServer()
server.bind('cn=root', (request, response, next) => {
  response.end()
  return next()
})
server.listen(process.env.PORT)
