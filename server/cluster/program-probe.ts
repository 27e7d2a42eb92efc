import net from 'node:net'
import tls from 'node:tls'
import { askOverHttp1, type ProbeClient } from '../../workers/http-client.ts'

/** a socket that the program listens at; `address`: as a URL */
type Target = { inode: number, address: string }

/** Node's names for an answer that is no HTTP, and for a connection that is closed without one. */
const OTHER_PROTOCOL = /^(HPE_|ECONNRESET|EPIPE|EPROTO|ERR_SSL)/
/** What a server of HTTPS says to HTTP, and others to what they cannot read. */
const BAD_REQUEST = 400

/** Asks a program over HTTP or HTTPS, whichever it speaks, at the first of its sockets that answers. */
export function createProgramProbe ({ targets, connect, timeoutMs }: {
  /** in the order in which it began to listen */
  targets: () => Target[],
  /** to this socket alone; null: nobody else has its address */
  connect: (inode: number) => net.Socket | null,
  timeoutMs: number
}): ProbeClient {
  /** By socket, once it is known what it speaks. */
  const clients: Map<number, ProbeClient> = new Map()
  /** Has answered as if it were the one to ask. */
  let preferred: Target | null = null

  return { async ask (path) {
    const asked = preferred ? [preferred] : targets()
    const answers = await Promise.allSettled(asked.map((target) => askTarget(target, path)))
    const at = answers.findIndex(({ status }) => status === 'fulfilled')
    const [first = { status: 'rejected', reason: new Error('it listens nowhere') }] = at === -1
      ? answers
      : answers.slice(at)
    if (first.status === 'rejected') throw first.reason
    if (first.value.status < BAD_REQUEST) preferred = asked[at]
    return first.value
  }, close () {
    for (const client of clients.values()) client.close()
    clients.clear()
  } }

  async function askTarget (target: Target, path: string) {
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

  function keep<Answer> (target: Target, client: ProbeClient, answer: Answer) {
    clients.set(target.inode, client)
    return answer
  }

  function clientOf (target: Target, isTls: boolean): ProbeClient {
    const { host, port, path } = placeOf(target)
    const open = () =>
      connect(target.inode) ?? (path === undefined ? net.connect({ host, port }) : net.connect({ path }))
    // Nobody has to trust its certificate: it is asked within this machine.
    return askOverHttp1({
      connect: () =>
        isTls ? tls.connect({ socket: open(), ALPNProtocols: ['http/1.1'], rejectUnauthorized: false }) : open(),
      host: port ? `${host}:${port}` : host,
      timeoutMs
    })
  }
}

function placeOf ({ address }: Target): { host: string, port: number, path?: string } {
  if (address.startsWith('unix:')) return { host: 'localhost', port: 0, path: address.slice('unix:'.length) }
  const { hostname, port } = new URL(address)
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(port) }
}

async function attempt (client: ProbeClient,
  path: string): Promise<{ answer?: import('../../workers/http-client.ts').Answer, error?: Error & { code?: string } }>
{
  try {
    return { answer: await client.ask(path) }
  } catch (error) {
    return { error: error as Error }
  }
}
