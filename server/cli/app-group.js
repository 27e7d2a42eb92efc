import { setTimeout as wait } from 'node:timers/promises'
import { inStopOrder } from '../config/app-order.js'
import { endText } from './app-process.js'
import { isReady } from './look.js'

/**
 * What has become of an app.
 * @typedef {'waiting' | 'starting' | 'ready' | 'stopped' | 'failed' | 'not started'} State
 * @typedef {import('./apps.js').App & { state: State, reason: string | null, look: import('./look.js').Look | null, process: import('./app-process.js').AppProcess | null, isReady: Promise<boolean>, isOver?: Promise<void> }} Member
 *   `isOver`: nothing of it that this program has started is left
 */

const POLL_MS = 100
/** How soon somebody is told what an app waits for; from then on, of each change. */
const EXPLAIN_AFTER_MS = 5000

/**
 * Several apps, each started once those that it depends on are ready. One that fails stops none of the others.
 * @param {readonly import('./apps.js').App[]} apps each behind those that it depends on
 * @param {object} parts
 * @param {(name: string) => import('./app-process.js').AppProcess} parts.start
 * @param {(dataDir: string) => Promise<import('./look.js').Look>} parts.look
 * @param {(dataDir: string) => Promise<boolean>} parts.isRunning
 * @param {(dataDir: string) => Promise<unknown>} parts.stop  one that this program has lost sight of
 * @param {(name: string, text: string) => void} parts.tell
 */
export function createAppGroup (apps, { start, look, isRunning, stop, tell }) {
  const waiting = new AbortController()
  let isStopping = false
  /** @type {Map<string, Member>} */
  const members = new Map()
  for (const app of apps) {
    const member = /** @type {Member} */ ({ ...app, state: 'waiting', reason: null, look: null, process: null })
    members.set(app.name, member)
    member.isReady = bringUp(member)
  }
  const all = [...members.values()]

  return {
    members: all,

    /** Each is ready, or will not get so by itself; or nobody waits any more. */
    settled: Promise.all(all.map((member) => member.isReady)),

    /** Nothing that was started is left. */
    over: Promise.all(all.map(isOver)),

    /** Waits no longer for any of them; they go on. */
    leave () { waiting.abort() },

    /** Stops those that were started here, each after those that depend on it. */
    async stop () {
      isStopping = true
      waiting.abort()
      await inStopOrder(members, all.map(({ name }) => name), async (name) => {
        const member = /** @type {Member} */ (members.get(name))
        member.process?.signal('SIGTERM')
        await isOver(member)
      })
    },

    /** Those that are left end at once. */
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
    const needs = member.dependsOn.map((name) => /** @type {Member} */ (members.get(name)))
    if (await isRunning(member.dataDir)) {
      tell(member.name, 'already runs, and is left as it is')
    } else {
      const missing = await firstNotReady(member, needs)
      if (isStopping) return leaveOut(member, null)
      if (missing) return leaveOut(member, whyMissing(missing))
      member.process = start(member.name)
    }
    member.state = 'starting'
    member.isOver = seeOff(member)
    return await untilReady(member)
  }

  /** @param {Member} member @param {Member[]} needs @returns {Promise<Member | undefined>} */
  async function firstNotReady (member, needs) {
    if (needs.length === 0) return undefined
    tell(member.name, `waits for ${needs.map(({ name }) => name).join(', ')}`)
    const explaining = explain(member, needs)
    const areReady = await Promise.all(needs.map((need) => need.isReady))
    clearInterval(explaining)
    return needs.find((_, index) => !areReady[index])
  }

  /** @param {Member} member @param {Member[]} needs */
  function explain (member, needs) {
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
      const seen = await look(member.dataDir)
      member.look = seen
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
  async function seeOff (member) {
    if (member.process === null) return
    const end = await member.process.ended
    while (end.code === null && await isRunning(member.dataDir)) {
      // Its keeper is gone, and the deck goes on without.
      if (isStopping) await stop(member.dataDir)
      else await wait(POLL_MS)
    }
    noteEnd(member, end)
    await member.process.drained
    tell(member.name, member.state === 'stopped' ? 'has stopped' : `has ended: ${member.reason}`)
  }

  /** @param {Member} member @param {import('./app-process.js').End} end */
  function noteEnd (member, end) {
    // Somebody has told it to.
    const isFine = end.code === 0
    member.state = isFine ? 'stopped' : 'failed'
    member.reason = isFine ? null : endText(end)
  }
}

/** @param {Member} member that another one depends on */
function whyMissing ({ name, state, reason, look }) {
  if (state === 'failed' || state === 'stopped') return `${name}, which it depends on, has ended${reason === null ? '' : ` (${reason})`}`
  if (state === 'not started') return `${name}, which it depends on, is not started`
  return `${name}, which it depends on, is not ready (${textOf(look)})`
}

/** @param {Member} member */
function howItIs ({ state, look }) {
  return state === 'starting' ? textOf(look) : state
}

/** @param {import('./look.js').Look | null} look */
export function textOf (look) {
  return look?.status?.health ? `${look.status.health.text}. ${look.status.health.hint}`.replace(/[.\s]+$/, '') : 'its master does not answer yet'
}
