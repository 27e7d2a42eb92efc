import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import autocannon from 'autocannon'

/**
 * Opens fresh connections at a steady rate, one request each, until it is told to stop.
 * @param {string} url @param {{ perSecond: number }} options
 */
export function openFreshConnections (url, { perSecond }) {
  /** @type {Promise<{ ms: number, failure: string | null }>[]} */
  const requests = []
  const answers = new EventEmitter()
  let answered = 0
  const startedAt = performance.now()
  // Catches up after a late timer, so that the rate holds on a busy machine.
  const timer = setInterval(() => {
    const due = Math.floor((performance.now() - startedAt) / 1000 * perSecond)
    while (requests.length < due) requests.push(request(url).finally(count))
  }, 5)

  function count () {
    answered++
    answers.emit('answer')
  }

  async function until (/** @type {() => boolean} */ isSo) {
    while (!isSo()) await once(answers, 'answer')
  }

  return {
    /** @param {number} total waits for that many answers in all */
    async untilAnswered (total) {
      await until(() => answered >= total)
    },

    /**
     * Acts in a moment in which no request is under way: what a process that is killed has already accepted,
     * nobody can answer any more.
     * @param {() => void} act
     */
    async whenIdle (act) {
      await until(() => answered === requests.length)
      act()
    },

    async stop () {
      clearInterval(timer)
      const results = await Promise.all(requests)
      return {
        total: results.length,
        failures: results.map(({ failure }) => failure).filter((failure) => failure !== null),
        slowestMs: Math.round(Math.max(...results.map(({ ms }) => ms)))
      }
    }
  }
}

/** @param {string} url @returns {Promise<{ ms: number, failure: string | null }>} */
function request (url) {
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const finish = (/** @type {string | null} */ failure) => resolve({ ms: performance.now() - startedAt, failure })
    const outgoing = http.get(url, { agent: false, timeout: 20_000 }, (response) => {
      response.resume()
      response.on('error', (error) => finish(error.message))
      response.on('end', () => finish(response.statusCode === 200 ? null : `status ${response.statusCode}`))
    }).on('timeout', () => outgoing.destroy(new Error('no answer within 20 s'))).on('error', (/** @type {any} */ error) => finish(error.code ?? error.message))
  })
}

/**
 * 32 connections that ask as fast as they are answered, until stopped.
 * @param {string} url @param {{ keepAlive?: boolean }} [options] `keepAlive: false`: a new connection for every request
 */
export function hammer (url, { keepAlive = true } = {}) {
  const run = autocannon({ url, connections: 32, duration: 600, headers: keepAlive ? {} : { connection: 'close' } })
  return {
    async stop () {
      /** @type {any} */ (run).stop()
      const { requests, errors, timeouts, non2xx } = await run
      return { total: requests.total, errors, timeouts, non2xx }
    }
  }
}
