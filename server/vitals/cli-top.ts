import { constants } from 'node:os'
import { emitKeypressEvents } from 'node:readline'
import { setTimeout as wait } from 'node:timers/promises'
import { attempt, DeckError } from '../errors.ts'
import { createApiClient, nullOn } from '../cli/api-client.ts'
import { findHost, isOpen } from '../cli/host.ts'
import { createScreen } from '../cli/screen.ts'
import { chosenApp, createPage, drawTop, pressKey, withApps, type App, type Page } from './cli-top-view.ts'
import { misuse } from '../cli/usage.ts'
import { flagOfDeck, namesDeck } from '../cli/deck-options.ts'
import { findMaster, findMasterAt, findNext, type Master } from '../cli/find-master.ts'
import { decksHere, findTargets } from '../cli/known-apps.ts'
import type { AppView } from '../host/api-apps.ts'
import type { Status } from '../api/cluster.ts'
import type { Options } from '../cli/commands.ts'
import type { Entry } from '../logs/cli.ts'
import type { Place, Terminal } from '../cli/program.ts'

/** The page of apps in a terminal: it asks each second, and draws what the view says. */

/** Who tells of apps: the host of a user, or a deck in the foreground. `isMeant`: which of its apps */
type Source = { master: Master, isMeant: (app: AppView) => boolean }

const EVERY_MS = 1000
/** A master that is silent for longer keeps the others waiting. */
const ANSWER_WITHIN_MS = 2000
const SIGNALS: readonly NodeJS.Signals[] = ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT']
const HUNG_UP = 128 + constants.signals.SIGHUP

type Told = { app: App, master: Master }

/**
 * Shows apps and their workers, until somebody quits.
 * @returns the exit code: 0, or as of a program that a signal has ended
 * @throws {DeckError} usage: no terminal; no-master: no app is told of; else as findSources() does
 */
export async function topCommand (names: readonly string[], options: Options, terminal: Terminal): Promise<number> {
  const { stdin = process.stdin, stdout, env, cwd } = terminal
  if (!stdin.isTTY || !stdout.isTTY || env.TERM === 'dumb') {
    const received = env.TERM === 'dumb'
      ? 'one that cannot move its cursor (TERM=dumb)'
      : `${stdin.isTTY ? 'stdout' : 'stdin'} is none`
    throw misuse('top', 'a terminal', `${received}; for scripts: clusterdeck status --watch`)
  }
  const { find, chosen } = await findSources(names, options, { env, cwd })
  const over = new AbortController()
  let { told, problem } = await readApps(find, [], over.signal)
  if (told.length === 0)
    throw problem ?? new DeckError('no-master', 'top: no app of this user runs on this machine, nor does a host')

  let page: Page = createPage(told.map(({ app }) => app), chosen)
  const { promise: ended, resolve: end } = Promise.withResolvers<number>()
  let pause = new AbortController()
  const screen = createScreen(stdout, { onResize: draw, hasColours: !env.NO_COLOR })
  const keyboard = createKeyboard(stdin, { onKey: press, onEnd: () => end(HUNG_UP) })
  const handlers = SIGNALS.map((signal) => [signal, () => end(128 + constants.signals[signal])] as const)
  const hangUp = () => end(HUNG_UP)

  for (const [signal, handler] of handlers) process.on(signal, handler)
  stdout.on('error', hangUp)
  try {
    keyboard.open()
    screen.open()
    return await Promise.race([ended, readAll()])
  } finally {
    over.abort()
    pause.abort()
    for (const [signal, handler] of handlers) process.off(signal, handler)
    screen.close()
    keyboard.close()
    stdout.off('error', hangUp)
  }

  function draw () {
    if (!over.signal.aborted) screen.draw(drawTop(page, screen.size(), Date.now()))
  }

  function press (key: string) {
    if (key === 'q' || key === 'ctrl+c') return end(0)
    const { chosen: before } = page
    page = pressKey(page, key)
    draw()
    // Whoever chooses an app waits for what it says.
    if (page.chosen !== before) pause.abort()
  }

  async function readAll (): Promise<number> {
    while (!over.signal.aborted) {
      pause = new AbortController()
      const detail = await readDetail()
      page = { ...page, detail: detail ?? page.detail }
      draw()
      await wait(EVERY_MS, undefined, { signal: pause.signal }).catch(() => {})
      ;({ told, problem } = await readApps(find, told, over.signal))
      page = { ...withApps(page, told.map(({ app }) => app)), problem: problem?.message ?? null }
      draw()
    }
    return await ended
  }

  async function readDetail (): Promise<Page['detail']> {
    const key = chosenApp(page)?.key
    const one = told.find(({ app }) => app.key === key)
    if (!one || !isOpen(one.app) || one.app.isSilent) return null
    const api = callOf(one.master, over.signal)
    const path = `/apps/${one.app.name}`
    const found = await Promise.all([api.get<Status>(`${path}/status`),
      api.get<{ items: Entry[] }>(`${path}/logs?lines=${screen.size().rows}`)]).catch(nullOn())
    return found && { key: one.app.key, status: found[0], lines: found[1].items }
  }
}

/** `before`: of whom nobody tells now, these stay as they were */
async function readApps (find: () => Promise<Source[]>, before: readonly Told[],
  over: AbortSignal): Promise<{ told: Told[], problem: DeckError | null }>
{
  let problem: DeckError | null = null
  try {
    const sources = await find()
    const all = await Promise.all(
      sources.map((source) =>
        readSource(source, over).catch((error) =>
          silence(error, before.filter(({ master }) => master.dataDir === source.master.dataDir))
        )
      )
    )
    return { told: all.flat(), problem }
  } catch (error) {
    return { told: silence(error, before), problem }
  }

  function silence (error: unknown, told: readonly Told[]): Told[] {
    if (!(error instanceof DeckError)) throw error
    problem = error
    return told.map(({ app, master }) => ({ app: { ...app, isSilent: true }, master }))
  }
}

async function readSource ({ master, isMeant }: Source, over: AbortSignal): Promise<Told[]> {
  const { items } = await callOf(master, over).get<{ items: AppView[] }>('/apps')
  return items.filter(isMeant).map((view) => ({
    app: { ...view, key: `${master.dataDir} ${view.name}`, isSilent: false },
    master
  }))
}

function callOf (master: Master, over: AbortSignal) {
  return createApiClient(master, { timeoutMs: ANSWER_WITHIN_MS,
    signal: AbortSignal.any([over, AbortSignal.timeout(ANSWER_WITHIN_MS)]) })
}

/**
 * Finds who is to be asked: for the named apps, for that of the named master, else for all apps of this user. Returns
 * `find`: the masters that run now; `chosen`: the data folder of the app that is meant first.
 * @throws {DeckError} as findMaster() and findTargets() do
 */
async function findSources (names: readonly string[], options: Options,
  place: Place): Promise<{ find: () => Promise<Source[]>, chosen: string | null }>
{
  const flag = flagOfDeck(options)
  if (names.length > 0 && flag !== null) throw misuse('top', `either an app or ${flag}`, 'both')
  if (names.length > 0) {
    const targets = await findTargets('top', names, place)
    const isMeant = ({ name, dataDir }: AppView) =>
      targets.some((target) => target.dataDir === null ? target.name === name : target.dataDir === dataDir)
    return { find: () => findAll(place, isMeant), chosen: null }
  }
  if (namesDeck(options, place.env)) {
    const first = await findMaster(options, place)
    return { find: async () => [ofMaster(await findNext(first, options, place))], chosen: null }
  }
  // The app of this folder is meant first.
  const chosen = await findMaster({}, place).then(({ dataDir }) => dataDir, () => null)
  return { find: () => findAll(place, () => true), chosen }
}

/** An app of a host is told of by its host. */
function ofMaster (master: Master): Source {
  const { app } = master
  return app === null
    ? { master, isMeant: () => true }
    : { master: { ...master, url: app.hostUrl }, isMeant: ({ name }) => name === app.name }
}

/** @returns the host, and decks that are not in it; the folder of one that is ending says nothing */
async function findAll (place: Place, isMeant: Source['isMeant']): Promise<Source[]> {
  const host = findHost(place.env)
  const decks = decksHere(place.env).filter(({ isInHost }) => !isInHost)
  const masters = await Promise.all(decks.map(({ dataDir }) => findMasterAt(String(dataDir), place).catch(nullOn())))
  return [host, ...masters].flatMap((master) => master === null ? [] : [{ master, isMeant }])
}

/**
 * The keys of a terminal, one by one, as they are pressed. `onKey`: gets a name such as q, up, ctrl+c; `onEnd`: the
 * terminal has gone
 */
function createKeyboard (stdin: NodeJS.ReadStream,
  { onKey, onEnd }: { onKey: (name: string) => void, onEnd: () => void })
{
  return { open () {
    emitKeypressEvents(stdin)
    stdin.setRawMode(true)
    stdin.on('keypress', pressKey).on('end', onEnd).on('error', onEnd)
    stdin.resume()
  }, close () {
    stdin.off('keypress', pressKey).off('end', onEnd)
    // EIO: the terminal has gone.
    attempt(() => stdin.setRawMode(false))
    stdin.pause()
  } }

  /** As node:readline has it. */
  function pressKey (_: string | undefined, { name, ctrl }: { name?: string, ctrl?: boolean }) {
    onKey(ctrl ? `ctrl+${name}` : String(name))
  }
}
