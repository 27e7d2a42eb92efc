import { existsSync, readdirSync } from 'node:fs'
import path from 'node:path'
import { isObject } from '../config/is-object.ts'
import { readConfigFile } from '../config/file.ts'
import { didYouMean } from '../config/nearest.ts'
import { DeckError } from '../errors.ts'
import { hostFolder } from '../system/host-folder.ts'
import { readJson } from '../system/json-file.ts'
import { runningDeckAt, runningDecks, type RunningDeck } from '../system/running-decks.ts'
import { appsIn } from './apps.ts'
import { callHost, findHost, listApps } from './host.ts'
import { forAll } from './pm2-words.ts'
import { misuse } from './usage.ts'
import type { AppView } from '../host/api-apps.ts'
import type { Place, Terminal } from './program.ts'

type Env = Terminal['env']
/** An app of this user on this machine: of the host, whether that runs or not, or a deck of its own. */
export type KnownApp = Pick<AppView, 'name' | 'reason' | 'nextTryAt' | 'entry' | 'configFile' | 'startedAt'> & {
  /** absolute; null: its configuration cannot be read */
  dataDir: string | null,
  isInHost: boolean,
  /** `not running`: nor does its host */
  state: AppView['state'] | 'not running',
  /** of its page */
  adminUrl: string | null,
  cwd: string | null,
  /** of clusterdeck */
  version: string | null,
  pid: number | null,
  keeperPid: number | null,
  /** as its host tells of it; null: that does not run, or has none of it */
  view: AppView | null
}
/** An app that a command is for. `place`: by which its master is found. */
export type Target = KnownApp & { place: { app: string } | { dataDir: string } | { name: string } }

/** The address of an app of a host. */
const IN_HOST = /\/apps\/[^/]+$/
/** What is known of an app that does not run. */
const IDLE = Object.freeze({ isInHost: false, state: 'not running', reason: null, nextTryAt: null, adminUrl: null,
  entry: null, cwd: null, configFile: null, version: null, startedAt: null, pid: null, keeperPid: null, view: null })

/** How what a host remembers comes back. */
export const BRING_BACK =
  'no host of this user runs: "clusterdeck host --detach" starts it, with the apps that are not stopped'

/**
 * Lists all apps, those of the host first. Returns `problem`: why the host does not tell of its apps; those of them
 * that run are in the list all the same.
 * @throws {DeckError} runtime-dir-unusable
 */
export async function knownApps (env: Env): Promise<{ apps: KnownApp[], problem: DeckError | null }> {
  const decks = decksHere(env)
  let problem: DeckError | null = null
  const inHost = await appsOfHost(env).catch((error) => {
    if (!(error instanceof DeckError)) throw error
    problem = error
    return []
  })
  const told = inHost.filter(({ view }) => view !== null)
  const running = [...told, ...decks.filter((deck) => !isAmong(told, deck))]
  return { apps: [...running, ...inHost.filter((app) => app.view === null && !isAmong(running, app))], problem }
}

function isAmong (apps: readonly KnownApp[], { dataDir }: KnownApp) {
  return apps.some((app) => app.dataDir === dataDir)
}

/**
 * Lists the apps of the host by name: as it tells of them, or as it remembers them where it does not run.
 * @throws {DeckError} data-dir-unusable, unauthenticated, no-master, timed-out: it does not answer
 */
export async function appsOfHost (env: Env): Promise<KnownApp[]> {
  const host = findHost(env)
  if (host === null) return recordedApps(env)
  return (await listApps(callHost(host, { env }))).map((view) => ofView(view, host.url, env))
}

/** The decks that say that they run, also those of a host. @throws {DeckError} runtime-dir-unusable */
export function decksHere (env: Env): KnownApp[] {
  return runningDecks(env).map(ofDeck)
}

/**
 * The apps on the list that the host keeps, whether it runs or not.
 * @returns by name
 * @throws {DeckError} data-dir-unusable
 */
export function recordedApps (env: Env): KnownApp[] {
  const folder = path.join(hostFolder(env), 'apps')
  const records = existsSync(folder) ? readdirSync(folder).filter((name) => name.endsWith('.json')) : []
  return records.map((name) => readJson(path.join(folder, name))).flatMap(ofRecord).sort(byName)
}

/** The app of a data folder. `known`: apps of the host; `name`: what it is called otherwise */
export function appAt (dataDir: string, name: string, known: readonly KnownApp[], env: Env): KnownApp {
  const deck = runningDeckAt(dataDir, env)
  return known.find((app) => app.dataDir === dataDir) ?? (deck ? ofDeck(deck) : { ...IDLE, name, dataDir })
}

/**
 * Finds apps by name: those of the config file in the working folder first, then those of the host, then decks in the
 * foreground. `command`: for messages; `takesAll`: it has `--all`.
 * @returns as the names
 * @throws {DeckError} usage: some name is of none, or of several; no-master: its host does not run. Nothing was done
 * then
 */
export async function findTargets (command: string, names: readonly string[], place: Place,
  { takesAll = false } = {}): Promise<Target[]>
{
  const { apps: known, problem } = await knownApps(place.env)
  const apps = [...await targetsOfFolder(known, place), ...known.map(toTarget)]
  return names.map((name) => {
    const [app, ...same] = apps.filter((each) => each.name === name)
    if (!app) throw problem ?? unknownApp(command, name, { known: apps, takesAll })
    if ('app' in app.place || app.view) return app
    if (app.pid === null) throw notRunning(app)
    return onlyOne(command, [app, ...same.filter(({ pid }) => pid !== null)])
  })
}

export function toTarget (app: KnownApp): Target {
  const { name, dataDir } = app
  return { ...app, place: dataDir === null ? { name } : { dataDir } }
}

async function targetsOfFolder (known: readonly KnownApp[], { env, cwd }: Place): Promise<Target[]> {
  const file = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  return [...file ? appsIn(file, cwd).values() : []].map(({ name, dataDir }) => ({ ...appAt(dataDir, name, known, env),
    name, place: { app: name } })
  )
}

export function unknownApp (command: string, name: string,
  { known, takesAll }: { known: readonly Pick<KnownApp, 'name'>[], takesAll: boolean })
{
  const names = [...new Set(known.map((each) => each.name))].sort()
  const expected = names.length === 0 ? 'an app, and there is none' : `some of ${names.join(', ')}`
  return misuse(command, expected,
    `${JSON.stringify(name)}${(takesAll && forAll(command, name)) || didYouMean(name, names)}`)
}

/** `what`: was given the name; `decks`: that have it @throws {DeckError} usage: several have */
export function onlyOne<App extends KnownApp> (what: string, decks: readonly App[]): App {
  const [deck] = decks
  if (decks.length === 1) return deck
  throw misuse(what, 'the name of one deck',
    `${JSON.stringify(deck.name)}, which ${decks.length} decks have; choose one by --data-dir: ${
      decks.map(({ dataDir }) => dataDir).join(', ')
    }`)
}

/** `app`: of the host @returns why it has no master, and what starts it */
export function notRunning ({ name, state, reason, view }: KnownApp) {
  const text = view
    ? `${state === 'failed' ? 'has' : 'is'} ${state}${reason === null ? '' : `: ${reason}`}`
    : state === 'stopped'
    ? 'is stopped, and the host of this user does not run'
    : 'does not run, nor does the host of this user'
  return new DeckError(view ? 'app-not-running' : 'no-master', `${name} ${text} (clusterdeck start ${name})`)
}

export function byName (one: { name: string }, other: { name: string }) {
  return one.name < other.name ? -1 : one.name > other.name ? 1 : 0
}

/** `hostUrl`: where its host is */
export function ofView (view: AppView, hostUrl: string, env: Env): KnownApp {
  const { name, dataDir, state, reason, nextTryAt, entry, cwd, configFile, startedAt } = view
  const { version = null, master, keeper } = (dataDir !== null && runningDeckAt(dataDir, env)) || {}
  return { name, dataDir, isInHost: true, state, reason, nextTryAt, adminUrl: `${hostUrl}${view.path}`, entry, cwd,
    configFile, version, startedAt, pid: master?.pid ?? null, keeperPid: keeper?.pid ?? null, view }
}

function ofDeck (
  { name, dataDir, adminUrl, entry, cwd, configFile, version, startedAt, master, keeper }: RunningDeck
): KnownApp {
  return { ...IDLE, name, dataDir, isInHost: IN_HOST.test(adminUrl), state: 'running', adminUrl, entry, cwd, configFile,
    version, startedAt, pid: master.pid, keeperPid: keeper?.pid ?? null }
}

/** @returns none: what a newer version has written */
function ofRecord (entry: unknown): KnownApp[] {
  if (!isObject(entry)) return []
  const { name, dataDir, order, wish } = entry
  if (typeof name !== 'string' || typeof dataDir !== 'string' || !isObject(order)) return []
  return [{ ...IDLE, name, dataDir, isInHost: true, cwd: textOrNull(order.cwd), configFile: textOrNull(order.config),
    state: wish === 'stopped' ? 'stopped' : 'not running' }]
}

function textOrNull (value: unknown) {
  return typeof value === 'string' ? value : null
}
