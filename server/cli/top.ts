import { constants } from 'node:os'
import { setTimeout as wait } from 'node:timers/promises'
import { DeckError } from '../errors.ts'
import { isOpen } from './host.ts'
import { createKeyboard } from './keyboard.ts'
import { rolloutText } from './output.ts'
import { createScreen } from './screen.ts'
import { chosenApp, createState, update, type Action, type App, type Command, type Input } from './top-model.ts'
import { findSources, type Source, type Sources } from './top-sources.ts'
import { drawTop } from './top-view.ts'
import { misuse } from './usage.ts'
import type { Entry } from './logs.ts'
import type { Options } from './commands.ts'
import type { Terminal } from './program.ts'
import type { Rollout } from '../api/rollouts.ts'

/** The page of apps in a terminal: it draws what the model says, and does what the model asks for. */

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
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']

/**
 * Shows apps and their workers, until somebody quits.
 * @returns the exit code: 0, or as of a program that a signal has ended
 * @throws {DeckError} usage: no terminal; else as findSources() does
 */
export async function topCommand (names: readonly string[], options: Options, terminal: Terminal): Promise<number> {
  const { stdin = process.stdin, stdout, env, cwd } = terminal
  if (!stdin.isTTY || !stdout.isTTY || env.TERM === 'dumb') {
    const received = env.TERM === 'dumb'
      ? 'one that cannot move its cursor (TERM=dumb)'
      : `${stdin.isTTY ? 'stdout' : 'stdin'} is none`
    throw misuse('top', 'a terminal', `${received}; for scripts: clusterdeck status --watch`)
  }
  return await showTop(await findSources(names, options, { env, cwd }), { stdin, stdout, env })
}

async function showTop ({ first, chosen, findMore }: Sources,
  { stdin, stdout, env }: { stdin: NodeJS.ReadStream, stdout: NodeJS.WriteStream,
    env: Record<string, string | undefined> }): Promise<number>
{
  const screen = createScreen({ stdout, env })
  const keyboard = createKeyboard(stdin, { onKey: (key) => {
    press({ type: 'key', ...key })
  }, onPasted: (text) => {
    press({ type: 'pasted', text })
  }, onEnd: () => end(128 + constants.signals.SIGHUP) })
  const sources: Map<string, Source> = new Map()
  const ended = new AbortController()
  const outcome = createOutcome()
  const handlers = {
    ...Object.fromEntries(SIGNALS.map((signal) => [signal, () => end(128 + constants.signals[signal])])),
    SIGTSTP: suspend,
    SIGCONT: resume,
    exit: close
  }
  let state = createState({ size: screen.size(), wanted: chosen })
  let isOnScreen = false
  let drawnAt = -Infinity
  let drawing: NodeJS.Timeout | undefined
  let following: AbortController | undefined

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

  function end (exitCode: number) {
    outcome.resolve(exitCode)
  }

  /** Runs beside the others; what nobody expects ends them all. */
  function inBackground (work: Promise<void>) {
    work.catch((error) => {
      if (!ended.signal.aborted) outcome.reject(error)
    })
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

  /** Takes what has come, and draws it in a moment. */
  function take (input: Input) {
    const next = update(state, input)
    state = next.state
    for (const command of next.commands) obey(command)
    drawing ??= setTimeout(drawNow, Math.max(0, drawnAt + DRAW_EVERY_MS - performance.now()))
  }

  /** Whoever has pressed a key looks at what it does. */
  function press (input: Input) {
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

  function obey (command: Command) {
    switch (command.type) {
      case 'quit':
        return end(0)
      case 'suspend':
        return suspend()
      case 'redraw':
        return screen.forget()
      case 'follow':
        return follow(command.app)
      default:
        return inBackground(act(command))
    }
  }

  function addSource (source: Source) {
    if (sources.has(source.name)) return
    sources.set(source.name, source)
    inBackground(watchSource(source))
  }

  async function findOthers (findMore: NonNullable<Sources['findMore']>) {
    for (; !ended.signal.aborted; await pause(FIND_EVERY_MS)) {
      try {
        for (const source of await findMore(
          new Set([...sources.keys(), ...state.apps.flatMap(({ dataDir }) => dataDir ?? [])])
        )) addSource(source)
      } catch (error) {
        sayIfKnown(error, '')
      }
    }
  }

  async function watchSource (source: Source) {
    const { name } = source
    let lostAt: number | null = null
    for (; !ended.signal.aborted; await pause(pauseOf(source))) {
      try {
        const { apps, notice } = await source.read()
        lostAt = null
        take({ type: 'read', source: name, apps })
        if (notice) take({ type: 'said', text: notice })
        await readChosen(source)
      } catch (error) {
        if (!(error instanceof DeckError)) throw error
        lostAt ??= performance.now()
        if (findMore && performance.now() - lostAt > GONE_AFTER_MS) return forgetSource(source)
        take({ type: 'lost', source: name, problem: `${error.message}; looking for the next master` })
      }
    }
  }

  /** One that comes again is found again. */
  function forgetSource ({ name, close: closeSource }: Source) {
    closeSource()
    const [app, ...others] = state.apps.filter(({ source }) => source === name)
    sources.delete(name)
    take({ type: 'gone', source: name })
    take({ type: 'said', text: `${app && others.length === 0 ? app.name : 'the host'} has ended`, tone: 'warn' })
  }

  function pauseOf ({ name }: Source) {
    const isLookedAt = chosenApp(state)?.source === name
    return isLookedAt ? READ_EVERY_MS : Math.max(READ_EVERY_MS, sources.size * 1000 / READS_PER_SECOND)
  }

  async function readChosen (source: Source) {
    const app = chosenApp(state)
    if (app?.source === source.name && isOpen(app))
      take({ type: 'status', key: app.key, status: await source.readStatus(app) })
  }

  function follow (app: App | null) {
    following?.abort()
    following = new AbortController()
    const source = app && sources.get(app.source)
    if (!source) return
    inBackground(readChosen(source).catch(unlessKnown))
    inBackground(followLogs(app, source, following.signal))
  }

  async function followLogs (app: App, source: Source, until: AbortSignal) {
    /** the id of the last message, from which the next master continues */
    let place: string | undefined
    for (; !until.aborted; await pause(READ_EVERY_MS)) {
      if (!state.apps.some((each) => each.key === app.key && isOpen(each))) continue
      try {
        let entries: Entry[] = []
        for await (const { event, data, id } of source.streamLogs(app, { lines: place === undefined ? FIRST_LINES : 0,
          place, until }))
        {
          if (data !== undefined)
            entries.push(
              event === 'message'
                ? data as Entry
                : { ...data as Entry,
                  text: `(${Number(Object(data).bytes)} bytes skipped: output is faster than this page)` }
            )
          // Lines come before the id that they belong to. Where the stream ends in between, the next one sends them
          // again.
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

  async function act ({ type, app }: { type: Action, app: App }) {
    const source = sources.get(app.source)
    if (!source) return
    try {
      await ACTIONS[type](app, { source, say: (text, tone) =>
        take({ type: 'said', text: `${app.name}: ${text}`, tone }), ended: ended.signal })
    } catch (error) {
      sayIfKnown(error, `${app.name}: `)
    }
  }

  function sayIfKnown (error: unknown, prefix: string) {
    unlessKnown(error)
    take({ type: 'said', text: `${prefix}${(error as DeckError).message}`, tone: 'bad' })
  }

  async function pause (ms: number) {
    await wait(ms, undefined, { signal: ended.signal }).catch(() => {})
  }
}

/** What is done once somebody has said yes. */
type Means = { source: Source, say: (text: string, tone?: string) => void, ended: AbortSignal }
const ACTIONS: Readonly<Record<Action, (app: App, means: Means) => Promise<void>>> = {
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

async function rollOut (kind: 'restart' | 'deploy', app: App, { source, say, ended }: Means) {
  const path = source.pathOf(app)
  // A deploy first copies the code.
  let rollout = await source.call(AbortSignal.timeout(ACTION_WITHIN_MS)).post<Rollout>(`${path}/rollouts`, { kind })
  let told = ''
  while (!rollout.done && rollout.state !== 'held' && !ended.aborted) {
    const text = rolloutText(rollout)
    if (text !== told) say(text)
    told = text
    rollout = await source.call().get(`${path}/rollouts/${rollout.id}?wait=${WAIT_FOR_ROLLOUT}`)
  }
  if (ended.aborted) return
  say(`${rolloutText(rollout)}${rollout.reason ? `: ${rollout.reason}` : ''}`,
    rollout.state === 'succeeded' ? 'ok' : 'bad')
}

/** @throws {unknown} what is no error of a call */
function unlessKnown (error: unknown) {
  if (!(error instanceof DeckError)) throw error
}

function createOutcome (): { promise: Promise<number>, resolve: (exitCode: number) => void,
  reject: (error: unknown) => void }
{
  return Promise.withResolvers()
}
