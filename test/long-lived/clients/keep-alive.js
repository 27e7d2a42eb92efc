import http from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

/** @typedef {{ at: number, pid: string }} Answer  or what has failed, in place of the pid */

/**
 * Clients that ask again and again on one connection each, and open another one after `Connection: close`.
 * @param {{ port: number, everyMs: number }} how
 */
export function createKeepAlives ({ port, everyMs }) {
  /** @type {Answer[]} */
  const answers = []
  const over = new AbortController()
  let connections = 0

  return {
    answers,
    connections: () => connections,
    /** @param {number} count @returns {Promise<unknown>} once each has had an answer */
    add: (count) => Promise.all(Array.from({ length: count }, addClient)),
    end () { over.abort() }
  }

  function addClient () {
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
    const first = ask(agent)
    first.then(async () => {
      while (!over.signal.aborted) {
        await wait(everyMs)
        await ask(agent)
      }
      agent.destroy()
    })
    return first
  }

  async function ask (/** @type {http.Agent} */ agent) {
    const pid = await askOnce(port, agent, () => connections++).catch((error) => error.code ?? error.message)
    answers.push({ at: performance.now(), pid })
  }
}

/** @param {number} port @param {http.Agent} agent @param {() => void} onFresh @param {string} [path] @returns {Promise<string>} */
export function askOnce (port, agent, onFresh, path = '/') {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (data) => { text += data }).on('end', () => resolve(text)).on('error', reject)
    }).on('error', reject).once('socket', () => { if (!request.reusedSocket) onFresh() })
  })
}
