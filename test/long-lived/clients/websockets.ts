import { once } from 'node:events'
import { setTimeout as wait } from 'node:timers/promises'
import { WebSocket } from 'ws'
import { errorReason } from '../../../server/errors.ts'
import { countBy } from '../count-by.ts'

/**
 * A client gets as many connections to one address as there are ports for it: these give each address a part of them.
 */
const ADDRESSES = 4
/** So many ask at the same time, as the queue of a listener is of this order. */
const AT_ONCE = 100
const COMES_BACK_WITHIN_MS = 1000

/** `at`: ms, monotonic; `unanswered`: messages that were sent before and not echoed */
export type Closing = { at: number, code: number, pid: number, unanswered: number, wasOpen: boolean }
type Client = { socket: WebSocket | null, pid: number, sent: number, echoed: number }

/** Clients of echo.js that send a message now and then, and come back soon after their connection has ended. */
export function createWebSockets ({ port, everyMs }: { port: number, everyMs: number }) {
  const clients: Client[] = []
  const closings: Closing[] = []
  /** What came that was not the next echo. */
  const strange: string[] = []
  const over = new AbortController()
  let isSending = true
  let comesBack = true
  /** Why connections could not be opened. */
  const failures: string[] = []
  let messages = 0

  return {
    closings,
    strange,
    messages: () => messages,
    failures,
    open: () => clients.filter(isOpen).length,
    /** How many are open, by the pid of the worker that has them. */
    byPid: () => countBy(clients.filter(isOpen), ({ pid }) => pid),
    /** Messages that were sent on a connection that is open, and have no echo yet. */
    unanswered: () => clients.filter(isOpen).reduce((sum, { sent, echoed }) => sum + sent - echoed, 0),

    /** `count`: how many more */
    async add (count: number) {
      for (let left = count; left > 0; left -= AT_ONCE) {
        await Promise.all(Array.from({ length: Math.min(left, AT_ONCE) }, addClient))
      }
    },

    /** Sends nothing any more, and whose connection ends does not come back. */
    quieten () {
      isSending = comesBack = false
    },

    async end () {
      over.abort()
      isSending = false
      for (const { socket } of clients) socket?.terminate()
      await wait(0)
    }
  }

  async function addClient () {
    const client: Client = { socket: null, pid: 0, sent: 0, echoed: 0 }
    const number = clients.push(client)
    await connect(client, `127.0.0.${1 + number % ADDRESSES}`)
    keepSending(client)
  }

  async function connect (client: Client, host: string) {
    const socket = client.socket = new WebSocket(`ws://${host}:${port}`, { perMessageDeflate: false })
    Object.assign(client, { pid: 0, sent: 0, echoed: 0 })
    /** What comes without an error has closed without a word. */
    let reason = 'closed'
    socket.on('error', (error) => {
      reason = errorReason(error)
    })
    socket.on('message', (data) => hear(client, String(data)))
    socket.once('close', (code) => {
      if (over.signal.aborted) return
      if (client.pid === 0) failures.push(reason)
      closings.push({ at: performance.now(), code, pid: client.pid, unanswered: client.sent - client.echoed,
        wasOpen: client.pid !== 0 })
      setTimeout(() => {
        if (comesBack && !over.signal.aborted) connect(client, host).catch(() => {})
      }, Math.random() * COMES_BACK_WITHIN_MS)
    })
    await Promise.race([once(socket, 'message'), once(socket, 'close')])
  }

  function hear (client: Client, text: string) {
    if (client.pid === 0) client.pid = Number(text.slice('pid '.length))
    else if (text === String(client.echoed)) client.echoed++
    else strange.push(text)
  }

  async function keepSending (client: Client) {
    await wait(Math.random() * everyMs)
    while (!over.signal.aborted) {
      if (isSending && isOpen(client)) {
        client.socket?.send(String(client.sent++))
        messages++
      }
      await wait(everyMs)
    }
  }
}

function isOpen ({ socket, pid }: Client) {
  return pid !== 0 && socket?.readyState === WebSocket.OPEN
}
