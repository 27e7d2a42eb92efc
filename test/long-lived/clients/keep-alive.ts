import http from 'node:http'
import { setTimeout as wait } from 'node:timers/promises'

/** or what has failed, in place of the pid */
type Answer = { at: number, pid: string }

/** Clients that ask again and again on one connection each, and open another one after `Connection: close`. */
export function createKeepAlives ({ port, everyMs }: { port: number, everyMs: number }) {
  const answers: Answer[] = []
  const over = new AbortController()
  let connections = 0

  return {
    answers,
    connections: () => connections,
    /** @returns once each has had an answer */
    add: (count: number): Promise<unknown> => Promise.all(Array.from({ length: count }, addClient)),
    end () {
      over.abort()
    }
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

  async function ask (agent: http.Agent) {
    const pid = await askOnce(port, agent, () => connections++).catch((error) => error.code ?? error.message)
    answers.push({ at: performance.now(), pid })
  }
}

export function askOnce (port: number, agent: http.Agent, onFresh: () => void, path: string = '/'): Promise<string> {
  return new Promise((resolve, reject) => {
    const request = http.get({ host: '127.0.0.1', port, path, agent }, (response) => {
      let text = ''
      response.setEncoding('utf8').on('data', (data) => {
        text += data
      }).on('end', () => resolve(text)).on('error', reject)
    }).on('error', reject).once('socket', () => {
      if (!request.reusedSocket) onFresh()
    })
  })
}
