const { SMTPServer } = require('smtp-server')

new SMTPServer({ authOptional: true, disabledCommands: ['STARTTLS'] }).listen(process.env.PORT)
