import { setTimeout as wait } from 'node:timers/promises'
import { startOrder } from '../config/app-order.js'
import { isObject } from '../config/is-object.js'
import { DeckError } from '../errors.js'
import { createAppGroup, textOf } from './app-group.js'
import { startApp } from './app-process.js'
import { rowsOf } from './apps-status.js'
import { checkedApps, findApps } from './apps.js'
import { decksTable } from './decks-table.js'
import { stopDeck } from './down.js'
import { timeoutOf } from './duration.js'
import { isRunning, readDeckStatus } from './deck-status.js'
import { createPrefixed } from './prefixed.js'

/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('./app-group.js').Member} Member */
/** @typedef {ReturnType<typeof createAppGroup>} AppGroup */

/** @type {Readonly<Partial<Record<import('./app-group.js').State, string>>>} */
const TEXTS = Object.freeze({ starting: 'is not ready', failed: 'failed', stopped: 'stopped', 'not started': 'was not started' })
/** @type {readonly NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP']
/** Output of another process that holds the pipe open may never end. */
const SHOWN_WITHIN_MS = 1000
/** How many lines are shown of an app that does not get ready. */
const SHOWN_LINES = 20

/**
 * Starts each app of a config file as its own deck.
 * @param {string[]} names none: all @param {{ config?: string, detach?: true, timeout?: string }} options @param {Terminal} terminal
 * @throws {DeckError} usage, invalid-config: nothing was started; start-failed: some are not ready, or failed
 */
export async function upCommand (names, options, terminal) {
  const { env, cwd, script } = terminal
  const { timeoutMs } = timeoutOf(options, env)
  const found = await findApps('up', options, terminal)
  const apps = startOrder(found.apps, checkedApps('up', names, found)).flatMap((name) => found.apps.get(name) ?? [])
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
    readStatus: (dataDir) => readDeckStatus(dataDir, place),
    isRunning: (dataDir) => isRunning(dataDir, place),
    stop: (dataDir) => stopDeck(dataDir, place, AbortSignal.timeout(timeoutMs)),
    tell: prefixed.say
  })
  return isDetached ? await startDetached(group, { terminal, timeoutMs, output }) : await runAttached(group, output)
}

/**
 * Runs as long as any of them. A first signal stops them, a second one kills what is left.
 * @param {AppGroup} group @param {{ shown: () => Promise<unknown> }} output
 */
async function runAttached (group, { shown }) {
  let isAgain = false
  const stopOrKill = () => {
    if (isAgain) return group.kill()
    isAgain = true
    group.stop()
  }
  for (const signal of SIGNALS) process.on(signal, stopOrKill)
  try {
    await group.over
    await Promise.race([shown(), wait(SHOWN_WITHIN_MS)])
  } finally {
    for (const signal of SIGNALS) process.off(signal, stopOrKill)
  }
  checkNoneMissing(group.members.filter(({ state, reason }) => state === 'failed' || (state === 'not started' && reason !== null)))
}

/**
 * Waits until all are ready, or it is clear which will not be. The apps run on without this program.
 * @param {AppGroup} group @param {{ terminal: Terminal, timeoutMs: number, output: { show: (name: string) => void } }} how
 */
async function startDetached (group, { terminal: { stdout, env, cwd }, timeoutMs, output }) {
  const timer = setTimeout(group.leave, timeoutMs)
  await group.settled
  clearTimeout(timer)
  const missing = group.members.filter(({ state }) => state !== 'ready')
  for (const member of missing) {
    if (member.state === 'starting') member.reason = textOf(member.answer)
    output.show(member.name)
  }
  for (const member of group.members) member.process?.release()
  const rows = await rowsOf(group.members, { env, cwd })
  stdout.write(`${decksTable(rows, { now: Date.now() })}\n`)
  checkNoneMissing(missing)
}

/** The reasons have been printed before. @param {Member[]} members @throws {DeckError} start-failed */
function checkNoneMissing (members) {
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

/** Keeps the last lines of each app, to show them if it does not get ready. @param {import('./prefixed.js').Prefixed} prefixed */
function keepOutput ({ say }) {
  /** @type {Map<string, string>} */
  const texts = new Map()
  return {
    /** @param {string} name @param {import('./app-process.js').AppProcess} process */
    of (name, { stdout, stderr, drained }) {
      for (const stream of [stdout, stderr]) stream.setEncoding('utf8').on('data', (text) => texts.set(name, lastLines((texts.get(name) ?? '') + text)))
      drained.then(() => showLastLines(name))
    },
    shown: async () => {},
    show: showLastLines
  }

  /** @param {string} name */
  function showLastLines (name) {
    for (const line of (texts.get(name) ?? '').split('\n').filter(Boolean)) say(name, line)
    texts.delete(name)
  }
}

/** @param {string} text */
function lastLines (text) {
  return text.split('\n').slice(-SHOWN_LINES - 1).join('\n')
}

/** Tells whether logs.mirror is set. @param {string} name @param {import('./apps.js').Apps} found @param {Record<string, string | undefined>} env */
function saysMirror (name, { values }, env) {
  const ofApps = isObject(values.apps) ? values.apps[name] : undefined
  return Boolean(env.CLUSTERDECK_LOGS_MIRROR) || [ofApps, values].some((each) => isObject(each) && isObject(each.logs) && each.logs.mirror !== undefined)
}
