import { setTimeout as wait } from 'node:timers/promises'
import { startOrder } from '../config/app-order.js'
import { DeckError } from '../errors.js'
import { createAppGroup, textOf } from './app-group.js'
import { startApp } from './app-process.js'
import { rowsOf } from './apps-status.js'
import { checkedApps, findApps } from './apps.js'
import { decksTable } from './decks-table.js'
import { stopDeck } from './down.js'
import { timeoutOf } from './duration.js'
import { isRunning, lookAt } from './look.js'
import { createPrefixed } from './prefixed.js'

/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('./app-group.js').Member} Member */
/** @typedef {ReturnType<typeof createAppGroup>} AppGroup */

/** @type {Readonly<Partial<Record<import('./app-group.js').State, string>>>} */
const TEXTS = Object.freeze({ starting: 'is not ready', failed: 'has failed', stopped: 'has stopped', 'not started': 'is not started' })
const SIGNALS = /** @type {const} */ (['SIGINT', 'SIGTERM', 'SIGHUP'])
/** What another process holds open has no end. */
const SHOWN_WITHIN_MS = 1000
/** Of what an app has written that does not get ready. */
const SHOWN_LINES = 20

/**
 * Starts each app of a config file as a deck of its own.
 * @param {string[]} names none: all @param {{ config?: string, detach?: true, timeout?: string }} options @param {Terminal} terminal
 * @throws {DeckError} usage, invalid-config: then nothing was started; start-failed: some are not ready, or have failed
 */
export async function up (names, options, terminal) {
  const { env, cwd, script } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  const found = await findApps('up', options, terminal)
  const apps = startOrder(found.apps, checkedApps('up', names, found)).map((name) => /** @type {import('./apps.js').App} */ (found.apps.get(name)))
  const prefixed = createPrefixed(apps.map(({ name }) => name), terminal)
  const place = { env, cwd }
  const isDetached = options.detach === true
  const output = isDetached ? keepOutput(prefixed) : showOutput(prefixed)
  const group = createAppGroup(apps, {
    start (name) {
      const process = startApp(name, { script, file: found.file, cwd, env, mirrors: !isDetached && !saysMirror(name, found, env) })
      output.of(name, process)
      return process
    },
    look: (dataDir) => lookAt(dataDir, place),
    isRunning: (dataDir) => isRunning(dataDir, place),
    stop: (dataDir) => stopDeck(dataDir, place, AbortSignal.timeout(timeoutMs)),
    tell: prefixed.say
  })
  return isDetached ? await detached(group, { terminal, timeoutMs, output }) : await attached(group, output)
}

/**
 * As long as any of them runs, or until somebody has enough of it.
 * @param {AppGroup} group @param {{ shown: () => Promise<unknown> }} output
 */
async function attached (group, { shown }) {
  let isAgain = false
  const end = () => {
    if (isAgain) return group.kill()
    isAgain = true
    group.stop()
  }
  for (const signal of SIGNALS) process.on(signal, end)
  try {
    await group.over
    await Promise.race([shown(), wait(SHOWN_WITHIN_MS)])
  } finally {
    for (const signal of SIGNALS) process.off(signal, end)
  }
  fail(group.members.filter(({ state, reason }) => state === 'failed' || (state === 'not started' && reason !== null)))
}

/**
 * Until all are ready, or it is known which will not be; then nothing of this program is left.
 * @param {AppGroup} group @param {{ terminal: Terminal, timeoutMs: number, output: { show: (name: string) => void } }} how
 */
async function detached (group, { terminal: { stdout, env, cwd }, timeoutMs, output }) {
  const timer = setTimeout(group.leave, timeoutMs)
  await group.settled
  clearTimeout(timer)
  const missing = group.members.filter(({ state }) => state !== 'ready')
  for (const member of missing) {
    if (member.state === 'starting') member.reason = textOf(member.look)
    output.show(member.name)
  }
  for (const member of group.members) member.process?.release()
  const rows = await rowsOf(group.members, { env, cwd })
  stdout.write(`${decksTable(rows, { now: Date.now() })}\n`)
  fail(missing)
}

/** @param {Member[]} members @throws {DeckError} start-failed */
function fail (members) {
  // Why has been said.
  if (members.length > 0) throw new DeckError('start-failed', `up: ${members.map(({ name, state }) => `${name} ${TEXTS[state]}`).join(', ')}`)
}

/** @param {import('./prefixed.js').Prefixed} prefixed */
function showOutput ({ pass }) {
  /** @type {Promise<unknown>[]} */
  const passing = []
  return {
    /** @param {string} name @param {import('./app-process.js').AppProcess} process */
    of (name, { stdout, stderr }) {
      passing.push(pass(name, stdout, 'stdout'), pass(name, stderr, 'stderr'))
    },
    shown: () => Promise.all(passing),
    show () {}
  }
}

/** The last lines, for the case that one does not get ready. @param {import('./prefixed.js').Prefixed} prefixed */
function keepOutput ({ say }) {
  /** @type {Map<string, string>} */
  const texts = new Map()
  return {
    /** @param {string} name @param {import('./app-process.js').AppProcess} process */
    of (name, { stdout, stderr, drained }) {
      for (const stream of [stdout, stderr]) stream.setEncoding('utf8').on('data', (text) => texts.set(name, lastLines((texts.get(name) ?? '') + text)))
      drained.then(() => show(name))
    },
    shown: async () => {},
    show
  }

  /** @param {string} name */
  function show (name) {
    for (const line of (texts.get(name) ?? '').split('\n').filter(Boolean)) say(name, line)
    texts.delete(name)
  }
}

/** @param {string} text */
function lastLines (text) {
  return text.split('\n').slice(-SHOWN_LINES - 1).join('\n')
}

/** @param {string} name @param {import('./apps.js').Apps} found @param {Record<string, string | undefined>} env @returns {boolean} whether somebody has decided */
function saysMirror (name, { values }, env) {
  return [env.CLUSTERDECK_LOGS_MIRROR || undefined, values.apps[name].logs?.mirror, values.logs?.mirror].some((each) => each !== undefined)
}
