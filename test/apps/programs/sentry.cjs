const Sentry = require('@sentry/node')

Sentry.init({ dsn: 'http://public@127.0.0.1:9/1', tracesSampleRate: 1 })
