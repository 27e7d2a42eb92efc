import net from 'node:net'
import { setTimeout as wait } from 'node:timers/promises'

/** What a client sees of how connections are spread. `path` is one that answers with who has answered. */
type Site = { port: number, path: string }

/** Long-lived connections: the largest share of a worker ÷ the mean. */
export async function largestShare ({ port, path }: Site,
  { connections, workers, gapMs }: { connections: number, workers: number, gapMs: number })
{
  const sockets: net.Socket[] = []
  const answers: Promise<string>[] = []
  for (let n = 0; n < connections; n++) {
    const socket = net.connect(port, '127.0.0.1')
    sockets.push(socket)
    answers.push(ask(socket, path))
    if (gapMs > 0) await wait(gapMs)
  }
  const counts = {} as Record<string, number>
  for (const who of await Promise.all(answers)) counts[who] = (counts[who] ?? 0) + 1
  for (const socket of sockets) socket.destroy()
  await wait(100)
  return Math.max(...Object.values(counts)) / (connections / workers)
}

/**
 * Kept connections to as many workers, each asked again as soon as it has answered.
 * @param how `busyPath`: is in JavaScript for a second
 * @returns ends it
 */
export async function keepBusy ({ port, path }: Site,
  { count, busyPath }: { count: number, busyPath: string }): Promise<() => Promise<void>>
{
  const sockets: Map<string, net.Socket> = new Map()
  while (sockets.size < count) {
    const socket = net.connect(port, '127.0.0.1').setMaxListeners(0)
    const who = await ask(socket, path)
    if (sockets.has(who)) socket.destroy()
    else sockets.set(who, socket)
  }
  const over = new AbortController()
  const loops = [...sockets.values()].map(async (socket) => {
    while (!over.signal.aborted) await ask(socket, busyPath)
    socket.destroy()
  })
  return async () => {
    over.abort()
    await Promise.all(loops)
  }
}

/** @returns ms from the connect to the answer; NaN: there was none */
export async function answerTimes (site: Site,
  { everyMs, seconds }: { everyMs: number, seconds: number }): Promise<number[]>
{
  const times: Promise<number>[] = []
  for (const endsAt = performance.now() + seconds * 1000; performance.now() < endsAt; await wait(everyMs))
    times.push(timeAnswer(site))
  return await Promise.all(times)
}

async function timeAnswer ({ port, path }: Site) {
  const begunAt = performance.now()
  const socket = net.connect(port, '127.0.0.1')
  try {
    await ask(socket, path)
    return performance.now() - begunAt
  } catch {
    return NaN
  } finally {
    socket.destroy()
  }
}

/** @returns who answers */
function ask (socket: net.Socket, path: string): Promise<string> {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`)
  return new Promise((resolve, reject) => {
    socket.once('data', (data) => resolve(String(/\r\n\r\n(?:[\da-f]+\r\n)?([\d.]+)/.exec(String(data))?.[1])))
    socket.once('error', reject)
    socket.once('close', () => reject(new Error('closed')))
  })
}
