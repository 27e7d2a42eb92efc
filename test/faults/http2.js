// What happens to HTTP/2 streams in restarts, with figures: each load over clear text and TLS, for ten restarts.
import { startDeck } from '../support/deck.js'
import { hammerHttp2 } from '../support/http2-load.js'

const RESTARTS = 10
const LOADS = /** @type {[string, Parameters<typeof hammerHttp2>[1]][]} */ ([
  ['16 clients with a new session for every request', { isKept: false }],
  ['16 long sessions', {}],
  ['16 long sessions with ten streams each', { streams: 10 }]
])

for (const [kind, app] of [['clear text', 'http2-app.js'], ['TLS', 'http2-over-tls.js']]) {
  for (const [name, load] of LOADS) {
    let stop = async () => {}
    const deck = await startDeck({ after (/** @type {any} */ end) { stop = end } }, app)
    await deck.until({ ready: 2 })
    const clients = hammerHttp2((await deck.appUrl()).replace('localhost', '127.0.0.1'), load)
    for (let count = 0; count < RESTARTS; count++) await deck.rollout('restart')
    const { total, failures, sessions } = await clients.stop()
    console.log(`${kind}, ${name}: ${failures.length} of ${total} failed in ${RESTARTS} restarts, over ${sessions} sessions ${[...new Set(failures)].join(', ')}`)
    await stop()
  }
}
