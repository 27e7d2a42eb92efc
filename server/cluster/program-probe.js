import net from 'node:net'
import tls from 'node:tls'
import { askOverHttp1 } from '../../workers/http-client.js'

/** @typedef {{ inode: number, address: string }} Target  a socket that the program listens at; `address`: as a URL */
/** @typedef {import('../../workers/http-client.js').ProbeClient} ProbeClient */

/** Node's names for an answer that is no HTTP, and for a connection that is closed without one. */
const OTHER_PROTOCOL = /^(HPE_|ECONNRESET|EPIPE|EPROTO|ERR_SSL)/
/** What a server of HTTPS says to HTTP, and others to what they cannot read. */
const BAD_REQUEST = 400

/**
 * Asks a program over HTTP or HTTPS, whichever it speaks, at the first of its sockets that answers.
 * @param {object} parts
 * @param {() => Target[]} parts.targets  in the order in which it began to listen
 * @param {(inode: number) => net.Socket | null} parts.connect  to this socket alone; null: nobody else has its address
 * @param {number} parts.timeoutMs
 * @returns {ProbeClient}
 */
export function createProgramProbe ({ targets, connect, timeoutMs }) {
  /** By socket, once it is known what it speaks. @type {Map<number, ProbeClient>} */
  const clients = new Map()
  /** Has answered as if it were the one to ask. @type {Target | null} */
  let preferred = null

  return {
    async ask (path) {
      const asked = preferred ? [preferred] : targets()
      const answers = await Promise.allSettled(asked.map((target) => askTarget(target, path)))
      const at = answers.findIndex(({ status }) => status === 'fulfilled')
      const [first = { status: 'rejected', reason: new Error('it listens nowhere') }] = at === -1 ? answers : answers.slice(at)
      if (first.status === 'rejected') throw first.reason
      if (first.value.status < BAD_REQUEST) preferred = asked[at]
      return first.value
    },

    close () {
      for (const client of clients.values()) client.close()
      clients.clear()
    }
  }

  /** @param {Target} target @param {string} path */
  async function askTarget (target, path) {
    const known = clients.get(target.inode)
    if (known) return known.ask(path)
    const plain = clientOf(target, false)
    const { answer, error } = await attempt(plain, path)
    if (answer && answer.status !== BAD_REQUEST) return keep(target, plain, answer)
    const secure = answer || OTHER_PROTOCOL.test(error?.code ?? '') ? clientOf(target, true) : null
    const second = secure ? await attempt(secure, path) : {}
    if (secure && second.answer) {
      plain.close()
      return keep(target, secure, second.answer)
    }
    secure?.close()
    if (answer) return keep(target, plain, answer)
    plain.close()
    throw error
  }

  /** @template Answer @param {Target} target @param {ProbeClient} client @param {Answer} answer */
  function keep (target, client, answer) {
    clients.set(target.inode, client)
    return answer
  }

  /** @param {Target} target @param {boolean} isTls @returns {ProbeClient} */
  function clientOf (target, isTls) {
    const { host, port, path } = placeOf(target)
    const open = () => connect(target.inode) ?? (path === undefined ? net.connect({ host, port }) : net.connect({ path }))
    // Nobody has to trust its certificate: it is asked within this machine.
    return askOverHttp1({ connect: () => isTls ? tls.connect({ socket: open(), ALPNProtocols: ['http/1.1'], rejectUnauthorized: false }) : open(), host: port ? `${host}:${port}` : host, timeoutMs })
  }
}

/** @param {Target} target @returns {{ host: string, port: number, path?: string }} */
function placeOf ({ address }) {
  if (address.startsWith('unix:')) return { host: 'localhost', port: 0, path: address.slice('unix:'.length) }
  const { hostname, port } = new URL(address)
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

/** @param {ProbeClient} client @param {string} path @returns {Promise<{ answer?: import('../../workers/http-client.js').Answer, error?: Error & { code?: string } }>} */
async function attempt (client, path) {
  try {
    return { answer: await client.ask(path) }
  } catch (error) {
    return { error: /** @type {Error} */ (error) }
  }
}
