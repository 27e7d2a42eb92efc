import { setTimeout as wait } from 'node:timers/promises'
import { inStopOrder } from '../config/app-order.js'
import { isReady } from '../health.js'
import { endText } from './app-process.js'
import { whyMissing, whyNotReady } from './why-not-ready.js'

/**
 * @typedef {import('./why-not-ready.js').Needed['state']} State
 *
 * @typedef {object} Progress
 * @property {State} state
 * @property {string | null} reason
 * @property {import('./deck-status.js').DeckStatus | null} answer  what its deck said when it was last asked
 * @property {import('./app-process.js').AppProcess | null} process
 * @property {Promise<boolean>} isReady
 * @property {Promise<void>} [isOver]  resolves once the process that was started here is gone
 *
 * @typedef {import('./apps.js').App & Progress} Member
 */

const POLL_MS = 100
/** After this time, the user is told what an app waits for. */
const EXPLAIN_AFTER_MS = 5000

/**
 * Starts several apps, each once those that it depends on are ready. One that fails stops none of the others.
 * @param {readonly import('./apps.js').App[]} apps each after those that it depends on
 * @param {object} parts
 * @param {(name: string) => import('./app-process.js').AppProcess} parts.start
 * @param {(dataDir: string) => Promise<import('./deck-status.js').DeckStatus>} parts.readStatus
 * @param {(dataDir: string) => Promise<boolean>} parts.isRunning
 * @param {(dataDir: string) => Promise<unknown>} parts.stop  stops a deck whose process is no child of this one
 * @param {(name: string, text: string) => void} parts.tell
 */
export function createAppGroup (apps, { start, readStatus, isRunning, stop, tell }) {
  const waiting = new AbortController()
  let isStopping = false
  /** @type {Map<string, Member>} */
  const members = new Map()
  for (const app of apps) {
    /** @type {Member} */
    const member = { ...app, state: 'waiting', reason: null, answer: null, process: null, isReady: Promise.resolve(false) }
    members.set(app.name, member)
    member.isReady = bringUp(member)
  }
  const all = [...members.values()]

  return {
    members: all,

    /** Resolves once everything that was started here is gone. */
    over: Promise.all(all.map(isOver)),

    /** Stops the apps that were started here, each after those that depend on it. */
    async stop () {
      isStopping = true
      waiting.abort()
      await inStopOrder(members, all.map(({ name }) => name), async (name) => {
        const member = members.get(name)
        member?.process?.signal('SIGTERM')
        if (member) await isOver(member)
      })
    },

    /** Ends what is left at once. */
    kill () {
      isStopping = true
      waiting.abort()
      for (const { process } of all) process?.signal('SIGTERM', 'SIGINT')
    }
  }

  /** @param {Member} member */
  async function isOver (member) {
    await member.isReady
    await member.isOver
  }

  /** @param {Member} member @returns {Promise<boolean>} */
  async function bringUp (member) {
    const needs = member.dependsOn.flatMap((name) => members.get(name) ?? [])
    if (await isRunning(member.dataDir)) {
      tell(member.name, 'already runs')
    } else {
      const missing = await firstNotReady(member, needs)
      if (isStopping) return leaveOut(member, null)
      if (missing) return leaveOut(member, whyMissing({ ...missing, status: missing.answer?.status ?? null }))
      member.process = start(member.name)
    }
    member.state = 'starting'
    member.isOver = waitForEnd(member)
    return await untilReady(member)
  }

  /** @param {Member} member @param {Member[]} needs @returns {Promise<Member | undefined>} */
  async function firstNotReady (member, needs) {
    if (needs.length === 0) return undefined
    tell(member.name, `waits for ${needs.map(({ name }) => name).join(', ')}`)
    const explaining = tellWhatItWaitsFor(member, needs)
    const areReady = await Promise.all(needs.map((need) => need.isReady))
    clearInterval(explaining)
    return needs.find((_, index) => !areReady[index])
  }

  /** @param {Member} member @param {Member[]} needs */
  function tellWhatItWaitsFor (member, needs) {
    let told = ''
    return setInterval(() => {
      const text = needs.filter(({ state }) => state !== 'ready').map((need) => `${need.name} (${howItIs(need)})`).join(', ')
      if (text !== told && text !== '') tell(member.name, `still waits for ${text}`)
      told = text
    }, EXPLAIN_AFTER_MS)
  }

  /** @param {Member} member @param {string | null} reason */
  function leaveOut (member, reason) {
    member.state = 'not started'
    member.reason = reason
    if (reason !== null) tell(member.name, `is not started: ${reason}`)
    return false
  }

  /** @param {Member} member @returns {Promise<boolean>} */
  async function untilReady (member) {
    while (!waiting.signal.aborted && member.state === 'starting') {
      const seen = await readStatus(member.dataDir)
      member.answer = seen
      if (seen.status !== null && isReady(seen.status) && member.state === 'starting') {
        member.state = 'ready'
        if (!isStopping) tell(member.name, 'is ready')
        return true
      }
      await wait(POLL_MS, undefined, { signal: waiting.signal }).catch(() => {})
    }
    return false
  }

  /** @param {Member} member */
  async function waitForEnd (member) {
    if (member.process === null) return
    const end = await member.process.ended
    while (end.code === null && await isRunning(member.dataDir)) {
      // The keeper is gone, and the deck runs on without it.
      if (isStopping) await stop(member.dataDir)
      else await wait(POLL_MS)
    }
    noteEnd(member, end)
    await member.process.drained
    tell(member.name, member.state === 'stopped' ? 'stopped' : `failed: ${member.reason}`)
  }

  /** @param {Member} member @param {import('./app-process.js').End} end */
  function noteEnd (member, end) {
    // An exit code of 0 means that somebody has stopped it.
    const isFine = end.code === 0
    member.state = isFine ? 'stopped' : 'failed'
    member.reason = isFine ? null : endText(end)
  }
}

/** @param {Member} member */
function howItIs ({ state, answer }) {
  return state === 'starting' ? whyNotReady(answer?.status ?? null, 'its master does not answer yet') : state
}
