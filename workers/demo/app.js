import cluster from 'node:cluster'
import http from 'node:http'
import { badParameter, numberParam } from './params.js'
import * as workloads from './workloads.js'

/**
 * The demo: the workloads by which people judge a cluster, as a plain Node server that knows nothing of clusterdeck.
 * `node workers/demo/app.js` runs it as one process, `clusterdeck start workers/demo/app.js` as a cluster.
 * PORT (3000; 0 for any free one) and HOST say where it listens.
 */

/** @typedef {(query: URLSearchParams, response: http.ServerResponse) => void} Handler */

/** @type {Record<string, Handler>} */
const ROUTES = {
  '/': (_query, response) => sendJson(response, 200, whoAmI()),
  '/fib': (query, response) => sendJson(response, 200, { data: workloads.fibonacci(numberParam(query, 'n', { fallback: 30, max: 40 })) }),
  '/work': (query, response) => sendJson(response, 200, { data: workloads.burnCpu(numberParam(query, 'loops', { fallback: 5_000_000, max: 1_000_000_000 })) }),
  '/slow': (query, response) => {
    const ms = numberParam(query, 'ms', { fallback: 1000, max: 300_000 })
    setTimeout(() => sendJson(response, 200, { ms, ...whoAmI() }), ms)
  },
  '/payload': (query, response) => workloads.sendPayload(response, numberParam(query, 'bytes', { fallback: 65_536, max: 100_000_000 })),
  '/stream': (query, response) => workloads.streamLines(response, {
    chunks: numberParam(query, 'chunks', { fallback: 10, max: 10_000 }),
    everyMs: numberParam(query, 'ms', { fallback: 200, max: 60_000 })
  }),
  '/explode': (_query, response) => {
    sendJson(response, 200, { explodes: 'now', ...whoAmI() })
    // After the handler has returned: nothing can catch it, as with a forgotten callback.
    setImmediate(() => { throw new Error('the demo exploded, as it was asked to') })
  },
  '/hang': workloads.hangForever,
  '/leak': (query, response) => sendJson(response, 200, { ...workloads.leakMemory(numberParam(query, 'bytes', { fallback: 10_000_000, max: 1_000_000_000 })), ...whoAmI() })
}

const server = http.createServer((request, response) => {
  // By hand: a URL parser throws at what strangers send, and `//` is a path here.
  const [pathname, search] = (request.url ?? '/').split(/\?(.*)/s)
  const handler = Object.hasOwn(ROUTES, pathname) ? ROUTES[pathname] : null
  try {
    if (handler) handler(new URLSearchParams(search), response)
    else sendJson(response, 404, { error: 'not-found', path: pathname, paths: Object.keys(ROUTES) })
  } catch (error) {
    const bad = badParameter(error)
    if (bad === null) throw error
    sendJson(response, 400, bad)
  }
})

server.listen(Number(process.env.PORT ?? 3000), process.env.HOST)

/** Which process answers: a page that is reloaded shows how requests spread over the workers. */
function whoAmI () {
  return {
    pid: process.pid,
    worker: cluster.worker?.id ?? null,
    slot: process.env.CLUSTERDECK_SLOT ? Number(process.env.CLUSTERDECK_SLOT) : null,
    release: process.env.CLUSTERDECK_RELEASE ?? null
  }
}

/** @param {http.ServerResponse} response @param {number} status @param {unknown} body */
function sendJson (response, status, body) {
  const text = JSON.stringify(body)
  response.writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) })
  response.end(text)
}
