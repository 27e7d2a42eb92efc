// A client in a process of its own that asks at a fixed rate, whether or not the server keeps up: loadAtRate() of
// client.ts starts it.
//   node open-loop.ts '{"port":80,"path":"/hello","connections":32,"perSecond":5000,"isClosing":false,"isBusy":true}'
// The time of a request begins when it was due, so that a stall counts for all requests that were due in it, and not
// only for those that had already been sent: https://groups.google.com/g/mechanical-sympathy/c/icNZJejUHfE (coordinated
// omission).
import net from 'node:net'
import { quantile } from '../figures.ts'
import { HUNG_MS } from './client.ts'

type Order = {
  port: number,
  path: string,
  /** at most that many at once */
  connections: number,
  perSecond: number,
  /** a connection per request */
  isClosing: boolean,
  /** looks at the clock all the time, on a core of its own; else once a millisecond */
  isBusy: boolean
}
/** `dueAt`: of the request that is under way */
type Connection = { socket: net.Socket | null, dueAt: number | null, text: string }

const { port, path, connections, perSecond, isClosing, isBusy } = JSON.parse(process.argv[2]) as Order
const REQUEST = `GET ${path} HTTP/1.1\r\nHost: localhost\r\n${isClosing ? 'Connection: close\r\n' : ''}\r\n`
const SEED = 4711

const free: Connection[] = Array.from({ length: connections }, () => ({ socket: null, dueAt: null, text: '' }))
/** When those were due that wait for a connection. */
const waiting: number[] = []
const underWay = new Set() as Set<Connection>
let times = [] as number[]
let failed = 0
let random = SEED
let nextDueAt = performance.now()
let isOver = false

process.on('message', async (word) => {
  if (word === 'end') await end()
  // A server that fails its slow requests would look fast otherwise.
  const all = [...times, ...Array(failed).fill(quantile(times, 1))]
  process.send?.({ total: all.length, failed, p50Ms: quantile(times, 0.5), p99Ms: quantile(times, 0.99),
    p99MsOfAll: quantile(all, 0.99) })
  times = []
  failed = 0
  if (isOver) process.exit()
})
process.on('disconnect', () => process.exit())
tick()

function tick () {
  if (isOver) return
  for (const now = performance.now(); nextDueAt <= now; nextDueAt += gapMs()) {
    const connection = free.shift()
    if (connection) ask(connection, nextDueAt)
    else waiting.push(nextDueAt)
  }
  if (isBusy) setImmediate(tick)
  else setTimeout(tick, 1)
}

/** Requests of many users come at random, with the same gaps in each run: those of a Poisson process. */
function gapMs () {
  random = (Math.imul(random, 1664525) + 1013904223) >>> 0
  return -Math.log(1 - random / 2 ** 32) * 1000 / perSecond
}

function ask (connection: Connection, dueAt: number) {
  connection.dueAt = dueAt
  underWay.add(connection)
  connection.socket ??= connect(connection)
  connection.socket.write(REQUEST)
}

function connect (connection: Connection) {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true })
  const isCurrent = () => connection.socket === socket
  socket.setEncoding('latin1')
  socket.on('data', (text) => {
    if (isCurrent()) read(connection, String(text))
  })
  // ECONNRESET and others: 'close' follows.
  socket.on('error', () => {})
  socket.on('end', () => socket.destroy())
  socket.on('close', () => {
    if (isCurrent()) lose(connection)
  })
  return socket
}

function read (connection: Connection, text: string) {
  connection.text += text
  const headEnd = connection.text.indexOf('\r\n\r\n')
  if (headEnd < 0) return
  const head = connection.text.slice(0, headEnd)
  const length = /\r\ncontent-length: (\d+)/i.exec(head)
  const isWhole = length
    ? connection.text.length >= headEnd + 4 + Number(length[1])
    : connection.text.endsWith('0\r\n\r\n')
  if (!isWhole) return
  if (head.startsWith('HTTP/1.1 200')) times.push(performance.now() - Number(connection.dueAt))
  else failed++
  if (/\r\nconnection: close/i.test(head)) drop(connection)
  release(connection)
}

/** Its server has closed it. */
function lose (connection: Connection) {
  connection.socket = null
  if (connection.dueAt === null) return
  failed++
  release(connection)
}

function drop (connection: Connection) {
  connection.socket?.destroy()
  connection.socket = null
}

function release (connection: Connection) {
  connection.dueAt = null
  connection.text = ''
  underWay.delete(connection)
  const dueAt = waiting.shift()
  if (dueAt === undefined) free.push(connection)
  else ask(connection, dueAt)
}

/** What waits for a connection is asked for, while answers come. What has none after a while has failed. */
async function end () {
  isOver = true
  let answered = times.length
  for (let lookedAt = performance.now(); underWay.size > 0 && performance.now() - lookedAt < HUNG_MS;
    await new Promise((resolve) => setTimeout(resolve, 10)))
  {
    if (times.length > answered) lookedAt = performance.now()
    answered = times.length
  }
  failed += underWay.size + waiting.length
}
