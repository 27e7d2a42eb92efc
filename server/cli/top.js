import { constants } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.js'
import { isOpen } from './host.js'
import { createKeyboard } from './keyboard.js'
import { rolloutText } from './output.js'
import { createScreen } from './screen.js'
import { chosenApp, createState, update } from './top-model.js'
import { findSources } from './top-sources.js'
import { drawTop } from './top-view.js'

/**
 * The page of apps in a terminal: it draws what the model says, and does what the model asks for.
 *
 * @typedef {import('./top-model.js').App} App
 * @typedef {import('./top-model.js').Action} Action
 * @typedef {import('./top-model.js').Command} Command
 * @typedef {import('./top-model.js').Entry} Entry
 * @typedef {import('./top-source.js').Source} Source
 */

const READ_EVERY_MS = 1000
/** Decks that are not looked at are read less often where they are many: each takes a request. */
const READS_PER_SECOND = 4
const FIND_EVERY_MS = 3000
/** A keeper has the next master within a few seconds; one that hangs is replaced after 10. */
const GONE_AFTER_MS = 20_000
const DRAW_EVERY_MS = 250
const RESUME_AFTER_MS = 100
const FIRST_LINES = 200
const WAIT_FOR_ROLLOUT = '1s'
const ACTION_WITHIN_MS = 5 * 60_000
/** @type {readonly NodeJS.Signals[]} */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

/**
 * Shows apps and their workers, until somebody quits.
 * @param {readonly string[]} names @param {import('./commands.js').Options} options @param {import('./program.js').Terminal} terminal
 * @returns {Promise<number>} the exit code: 0, or as of a program that a signal has ended
 * @throws {DeckError} usage: no terminal; else as findSources() does
 */
export async function topCommand (names, options, terminal) {
  const { stdin = process.stdin, stdout, env, cwd } = terminal
  if (!stdin.isTTY || !stdout.isTTY || env.TERM === 'dumb') {
    const received = env.TERM === 'dumb' ? 'one that cannot move its cursor (TERM=dumb)' : `${stdin.isTTY ? 'stdout' : 'stdin'} is none`
    throw new DeckError('usage', `top: expected a terminal, received ${received}; for scripts: clusterdeck status --watch`)
  }
  return await showTop(await findSources(names, options, { env, cwd }), { stdin, stdout, env })
}

/**
 * @param {import('./top-sources.js').Sources} found
 * @param {{ stdin: NodeJS.ReadStream, stdout: NodeJS.WriteStream, env: Record<string, string | undefined> }} terminal
 * @returns {Promise<number>}
 */
async function showTop ({ first, chosen, findMore }, { stdin, stdout, env }) {
  const screen = createScreen({ stdout, env })
  const keyboard = createKeyboard(stdin, {
    onKey: (key) => { press({ type: 'key', ...key }) },
    onPasted: (text) => { press({ type: 'pasted', text }) },
    onEnd: () => end(128 + constants.signals.SIGHUP)
  })
  /** @type {Map<string, Source>} */
  const sources = new Map()
  const ended = new AbortController()
  const outcome = createOutcome()
  const handlers = { ...Object.fromEntries(SIGNALS.map((signal) => [signal, () => end(128 + constants.signals[signal])])), SIGTSTP: suspend, SIGCONT: resume, exit: close }
  let state = createState({ size: screen.size(), wanted: chosen })
  let isOnScreen = false
  let drawnAt = -Infinity
  /** @type {NodeJS.Timeout | undefined} */
  let drawing
  /** @type {AbortController | undefined} */
  let following

  try {
    for (const [event, handler] of Object.entries(handlers)) process.on(event, handler)
    stdout.on('resize', resize).on('error', hangUp)
    open()
    for (const source of first) addSource(source)
    if (findMore) inBackground(findOthers(findMore))
    return await outcome.promise
  } finally {
    ended.abort()
    following?.abort()
    clearTimeout(drawing)
    for (const source of sources.values()) source.close()
    for (const [event, handler] of Object.entries(handlers)) process.off(event, handler)
    stdout.off('resize', resize)
    close()
    stdout.off('error', hangUp)
  }

  /** @param {number} exitCode */
  function end (exitCode) {
    outcome.resolve(exitCode)
  }

  /** Runs beside the others; what nobody expects ends them all. @param {Promise<void>} work */
  function inBackground (work) {
    work.catch((error) => { if (!ended.signal.aborted) outcome.reject(error) })
  }

  function hangUp () {
    end(128 + constants.signals.SIGHUP)
  }

  function open () {
    isOnScreen = true
    keyboard.open()
    screen.open()
    drawNow()
  }

  function close () {
    if (!isOnScreen) return
    isOnScreen = false
    screen.close()
    keyboard.close()
  }

  /** Stops as any program does; the shell goes on then. Where there is no shell, the system ignores that. */
  function suspend () {
    close()
    process.off('SIGTSTP', suspend)
    process.kill(0, 'SIGTSTP')
    setTimeout(resume, RESUME_AFTER_MS)
  }

  function resume () {
    if (isOnScreen || ended.signal.aborted) return
    process.on('SIGTSTP', suspend)
    state = update(state, { type: 'resized', ...screen.size() }).state
    open()
  }

  function resize () {
    screen.forget()
    press({ type: 'resized', ...screen.size() })
  }

  /** Takes what has come, and draws it in a moment. @param {import('./top-model.js').Input} input */
  function take (input) {
    const next = update(state, input)
    state = next.state
    for (const command of next.commands) obey(command)
    drawing ??= setTimeout(drawNow, Math.max(0, drawnAt + DRAW_EVERY_MS - performance.now()))
  }

  /** Whoever has pressed a key looks at what it does. @param {import('./top-model.js').Input} input */
  function press (input) {
    take(input)
    drawNow()
  }

  function drawNow () {
    clearTimeout(drawing)
    drawing = undefined
    if (!isOnScreen || ended.signal.aborted) return
    drawnAt = performance.now()
    const { rows, region } = drawTop(state, Date.now())
    screen.draw(rows, region)
  }

  /** @param {Command} command */
  function obey (command) {
    switch (command.type) {
      case 'quit': return end(0)
      case 'suspend': return suspend()
      case 'redraw': return screen.forget()
      case 'follow': return follow(command.app)
      default: return inBackground(act(command))
    }
  }

  /** @param {Source} source */
  function addSource (source) {
    if (sources.has(source.name)) return
    sources.set(source.name, source)
    inBackground(watchSource(source))
  }

  /** @param {NonNullable<import('./top-sources.js').Sources['findMore']>} findMore */
  async function findOthers (findMore) {
    for (; !ended.signal.aborted; await pause(FIND_EVERY_MS)) {
      try {
        for (const source of await findMore(new Set([...sources.keys(), ...state.apps.flatMap(({ dataDir }) => dataDir ?? [])]))) addSource(source)
      } catch (error) {
        sayIfKnown(error, '')
      }
    }
  }

  /** @param {Source} source */
  async function watchSource (source) {
    const { name } = source
    /** @type {number | null} */
    let lostAt = null
    for (; !ended.signal.aborted; await pause(pauseOf(source))) {
      try {
        const { apps, status, notice } = await source.read()
        lostAt = null
        take({ type: 'read', source: name, apps })
        if (notice) take({ type: 'said', text: notice })
        if (status) take({ type: 'status', key: apps[0].key, status })
        else await readChosen(source)
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        lostAt ??= performance.now()
        if (findMore && performance.now() - lostAt > GONE_AFTER_MS) return forgetSource(source)
        take({ type: 'lost', source: name, problem: `${error.message}; looking for the next master` })
      }
    }
  }

  /** One that comes again is found again. @param {Source} source */
  function forgetSource ({ name, isHost, close: closeSource }) {
    closeSource()
    const [app] = state.apps.filter(({ source }) => source === name)
    sources.delete(name)
    take({ type: 'gone', source: name })
    take({ type: 'said', text: isHost ? 'the host has ended' : `${app?.name ?? name} has ended`, tone: 'warn' })
  }

  /** @param {Source} source */
  function pauseOf ({ name }) {
    const isLookedAt = chosenApp(state)?.source === name
    return isLookedAt ? READ_EVERY_MS : Math.max(READ_EVERY_MS, sources.size * 1000 / READS_PER_SECOND)
  }

  /** @param {Source} source */
  async function readChosen (source) {
    const app = chosenApp(state)
    if (app?.source === source.name && isOpen(app)) take({ type: 'status', key: app.key, status: await source.readStatus(app) })
  }

  /** @param {App | null} app */
  function follow (app) {
    following?.abort()
    following = new AbortController()
    const source = app && sources.get(app.source)
    if (!source) return
    if (source.isHost) inBackground(readChosen(source).catch(unlessKnown))
    inBackground(followLogs(app, source, following.signal))
  }

  /** @param {App} app @param {Source} source @param {AbortSignal} until */
  async function followLogs (app, source, until) {
    /** @type {string | undefined} the id of the last message, from which the next master continues */
    let place
    for (; !until.aborted; await pause(READ_EVERY_MS)) {
      if (!state.apps.some((each) => each.key === app.key && isOpen(each))) continue
      try {
        /** @type {Entry[]} */
        let entries = []
        for await (const { event, data, id } of source.streamLogs(app, { lines: place === undefined ? FIRST_LINES : 0, place, until })) {
          if (data !== undefined) entries.push(event === 'message' ? data : { ...data, text: `(${Number(data.bytes)} bytes skipped: output is faster than this page)` })
          // Lines come before the id that they belong to. Where the stream ends in between, the next one sends them again.
          if (id === undefined) continue
          place = id
          if (entries.length > 0) take({ type: 'lines', key: app.key, entries })
          entries = []
        }
      } catch (error) {
        if (!until.aborted) unlessKnown(error)
      }
    }
  }

  /** @param {{ type: Action, app: App }} command */
  async function act ({ type, app }) {
    const source = sources.get(app.source)
    if (!source) return
    try {
      await ACTIONS[type](app, { source, say: (text, tone) => take({ type: 'said', text: `${app.name}: ${text}`, tone }), ended: ended.signal })
    } catch (error) {
      sayIfKnown(error, `${app.name}: `)
    }
  }

  /** @param {unknown} error @param {string} prefix */
  function sayIfKnown (error, prefix) {
    unlessKnown(error)
    take({ type: 'said', text: `${prefix}${/** @type {DeckError} */ (error).message}`, tone: 'bad' })
  }

  /** @param {number} ms */
  async function pause (ms) {
    await wait(ms, undefined, { signal: ended.signal }).catch(() => {})
  }
}

/**
 * What is done once somebody has said yes.
 * @typedef {{ source: Source, say: (text: string, tone?: string) => void, ended: AbortSignal }} Means
 * @type {Readonly<Record<Action, (app: App, means: Means) => Promise<void>>>}
 */
const ACTIONS = {
  restart: (app, means) => rollOut('restart', app, means),
  deploy: (app, means) => rollOut('deploy', app, means),
  async stop (app, { source, say }) {
    await source.call().post(`${source.pathOf(app)}/stop`)
    say('stopping: its workers finish their requests')
  },
  async start (app, { source, say }) {
    await source.call().post(`${source.pathOf(app)}/start`)
    say('starting')
  }
}

/** @param {'restart' | 'deploy'} kind @param {App} app @param {Means} means */
async function rollOut (kind, app, { source, say, ended }) {
  const path = source.pathOf(app)
  // A deploy first copies the code.
  let rollout = await source.call(AbortSignal.timeout(ACTION_WITHIN_MS)).post(`${path}/rollouts`, { kind })
  let told = ''
  while (!rollout.done && rollout.state !== 'held' && !ended.aborted) {
    const text = rolloutText(rollout)
    if (text !== told) say(text)
    told = text
    rollout = await source.call().get(`${path}/rollouts/${rollout.id}?wait=${WAIT_FOR_ROLLOUT}`)
  }
  if (ended.aborted) return
  say(`${rolloutText(rollout)}${rollout.reason ? `: ${rollout.reason}` : ''}`, rollout.state === 'succeeded' ? 'ok' : 'bad')
}

/** @param {unknown} error @throws {unknown} what is no error of a call */
function unlessKnown (error) {
  if (!(error instanceof DeckError)) throw error
}

/** @returns {{ promise: Promise<number>, resolve: (exitCode: number) => void, reject: (error: unknown) => void }} */
function createOutcome () {
  /** @type {any} */
  const outcome = {}
  outcome.promise = new Promise((resolve, reject) => Object.assign(outcome, { resolve, reject }))
  return outcome
}
