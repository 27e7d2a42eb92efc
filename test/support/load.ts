import assert from 'node:assert/strict'
import { EventEmitter, once } from 'node:events'
import http from 'node:http'
import { errorCode } from '../../server/errors.ts'
import type { TestOwner } from './deck.ts'

/**
 * Flags of a deck that autocannon asks and counts for: it goes on over a connection whose last answer has said that it
 * closes, and tells neither an answer nor an error of what it asks there.
 */
export const COUNTED_BY_AUTOCANNON = Object.freeze(['--rebalance', 'off'])

/** Fresh connections that have no answer yet. */
const MAX_WAITING = 30

/**
 * Opens fresh connections at a steady rate, one request each, until it is told to stop, or its test is over. On a
 * machine that is too busy for the rate there are fewer: those that wait would only become more and more.
 */
export function openFreshConnections (t: TestOwner, url: string,
  { perSecond, socketPath }: { perSecond: number, socketPath?: string })
{
  const requests: Promise<{ ms: number, failure: string | null }>[] = []
  const answers = countAnswers()
  const startedAt = performance.now()
  let due = 0
  let waiting = 0
  const timer = setInterval(() => {
    // Catches up after a late timer, so that the rate holds.
    for (; due < Math.floor((performance.now() - startedAt) / 1000 * perSecond); due++) if (waiting < MAX_WAITING) ask()
  }, 5)
  t.after(() => clearInterval(timer))

  function ask () {
    waiting++
    requests.push(request(url, { socketPath }).finally(() => {
      waiting--
      answers.count()
    }))
  }

  return {
    untilAnswered: answers.untilAnswered,

    /**
     * Acts in a moment in which no request is under way: what a process that is killed has already accepted,
     * nobody can answer any more.
     */
    async whenIdle (act: () => void) {
      await answers.until((answered) => answered === requests.length)
      act()
    },

    /** No request is under way. */
    isIdle: () => waiting === 0,

    stop,
    checkNoneLost: () => checkNoneLost(stop)
  }

  async function stop () {
    clearInterval(timer)
    const results = await Promise.all(requests)
    return { total: results.length,
      failures: results.map(({ failure }) => failure).filter((failure) => failure !== null),
      slowestMs: Math.round(Math.max(...results.map(({ ms }) => ms))) }
  }
}

/** Acts in a moment in which no request of any of them is under way. */
export async function whenAllIdle (loads: ReturnType<typeof openFreshConnections>[], act: () => void) {
  do for (const load of loads) await load.whenIdle(() => {})
  while (!loads.every((load) => load.isIdle()))
  act()
}

/** Stops a load, of which each request has to have been answered. Returns what it tells of them. */
async function checkNoneLost<T extends { total: number, failures: string[] }> (stop: () => Promise<T>): Promise<T> {
  const told = await stop()
  assert.deepEqual(told.failures, [], `of ${told.total} requests`)
  return told
}

function countAnswers () {
  const answers = new EventEmitter()
  let answered = 0
  async function until (isSo: (answered: number) => boolean) {
    while (!isSo(answered)) await once(answers, 'answer')
  }

  return {
    until,

    count () {
      answered++
      answers.emit('answer')
    },

    /** `total`: waits for that many answers in all */
    async untilAnswered (total: number) {
      await until((answered) => answered >= total)
    }
  }
}

function request (url: string,
  { agent = false, socketPath }: { agent?: http.Agent | false, socketPath?: string }
): Promise<{ ms: number, failure: string | null }> {
  const startedAt = performance.now()
  return new Promise((resolve) => {
    const finish = (failure: string | null) => resolve({ ms: performance.now() - startedAt, failure })
    const fail = (failure: string) => finish(`${failure} after ${Math.round(performance.now() - startedAt)} ms`)
    const outgoing = http.get(url, { agent, socketPath, timeout: 60_000 }, (response) => {
      response.resume()
      response.on('error', (error) => fail(error.message))
      response.on('end', () => finish(response.statusCode === 200 ? null : `status ${response.statusCode}`))
    }).on('timeout', () => outgoing.destroy(new Error('no answer within 60 s'))).on('error',
      (error) => fail(errorCode(error) ?? error.message))
  })
}

/**
 * Connections that ask, breathe and ask again, until stopped: some are always waiting for an answer and others idle,
 * and there is CPU time left for those that are to be replaced. As an HTTP client has to, each goes on after a
 * `Connection: close` with a new connection, and counts every request that was sent and not answered. (autocannon does
 * neither: a connection that ends without an answer is opened again, and nothing is counted.). `t`: it ends with the
 * test; `options`: `keepAlive: false`: a new connection for every request.
 */
export function hammer (t: TestOwner, url: string,
  { keepAlive = true, connections = 32, breathMs = BREATH_MS }: { keepAlive?: boolean, connections?: number,
    breathMs?: number } = {})
{
  const answers = countAnswers()
  const clients = Array.from({ length: connections },
    () => keepAsking(url, { keepAlive, breathMs, onAnswer: answers.count }))
  t.after(stop)
  return { untilAnswered: answers.untilAnswered, stop, checkNoneLost: () => checkNoneLost(stop) }

  async function stop () {
    const counts = await Promise.all(clients.map((client) => client.stop()))
    return { total: counts.reduce((sum, { total }) => sum + total, 0),
      failures: counts.flatMap(({ failures }) => failures) }
  }
}

const BREATH_MS = 40
/** A few clients, with a new connection for every request. */
export const FEW = Object.freeze({ keepAlive: false, connections: 4, breathMs: 20 })
/**
 * The app may have closed a connection that was idle for longer: shorter than every grace period for idle connections
 * under load.
 */
const IDLE_AT_MOST_MS = 500

function keepAsking (url: string,
  { keepAlive, breathMs, onAnswer }: { keepAlive: boolean, breathMs: number, onAnswer: () => void })
{
  const agent = keepAlive ? new http.Agent({ keepAlive, maxSockets: 1 }) : false
  const failures: string[] = []
  let total = 0
  const stopping = new AbortController()
  const ended = ask()
  return { async stop () {
    stopping.abort()
    await ended
    if (agent) agent.destroy()
    return { total, failures }
  } }

  async function ask () {
    while (!stopping.signal.aborted) {
      const startedAt = performance.now()
      const { failure } = await request(url, { agent })
      total++
      if (failure !== null) failures.push(failure)
      onAnswer()
      await new Promise((resolve) => setTimeout(resolve, breathMs))
      // The answer may have been there long before this process had a CPU to read it.
      if (agent && performance.now() - startedAt > IDLE_AT_MOST_MS) agent.destroy()
    }
  }
}
