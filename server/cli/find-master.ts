import { existsSync } from 'node:fs'
import path from 'node:path'
import { pickApp } from '../config/apps.ts'
import { readConfigFile } from '../config/file.ts'
import { didYouMean } from '../config/nearest.ts'
import { attempt, DeckError, type ErrorCode } from '../errors.ts'
import { isAlive } from '../system/process-identity.ts'
import { runningDecks } from '../system/running-decks.ts'
import { asNamed } from '../system/working-folder.ts'
import { givenToken, readAnnounced, readToken, type Announced, type DataFolder } from './announced.ts'
import { dataFolder } from './apps.ts'
import { flagOfDeck, namesDeck } from './deck-options.ts'
import { expectHost, findHost, isOpen } from './host.ts'
import { appsOfHost, decksHere, knownApps, notRunning, onlyOne } from './known-apps.ts'
import { misuse } from './usage.ts'
import type { Recipient } from '../system/recipient.ts'
import type { Place } from './program.ts'

/** What a user may say of which app is meant. */
type Said = Partial<Record<'url' | 'token' | 'tokenFile' | 'dataDir' | 'app' | 'name', string>>
export type Master = {
  url: string,
  token: string,
  /** of its certificate, where the data folder has it */
  fingerprint: string | null,
  /** the processes that may get the token; null: any, as the user has named the address */
  recipient: Recipient | null,
  dataDir: string,
  /** which app of a host it is; null: it is no app of a host, or the user has named the address */
  app: { name: string, hostUrl: string, hostDir: string } | null,
  /** the member of its fleet that is meant instead */
  member?: string,
  /** of the API: the calls that a host has as an app has them */
  below?: '/host'
}
type Running =
  & Omit<Announced, 'host' | 'folder'>
  & Pick<Master, 'app'>
  & { tokenFolders: string[] }

/**
 * Finds the master and its token: as named by the user, else as the data folder says.
 * @throws {DeckError} no-master, app-not-running, unauthenticated, usage, invalid-config, runtime-dir-unusable
 */
export async function findMaster (options: Said, { env, cwd }: Place): Promise<Master> {
  const byName = await findByName(options, env)
  const place = byName === null ? await findDataDir(options, env, cwd) : { folder: byName, isNamed: true }
  const dataDir = place.folder
  const named = byName === null ? checkedUrl(options.url ?? (env.CLUSTERDECK_URL || undefined)) : null
  const running = readRunning(place, env)
  const url = named ?? running?.url
  if (url === undefined) throw await whyNone(place, env)
  // The token of this folder is for its own master, so it is sent to no other address.
  const own = named === null || named === running?.url ? running : null
  const token = givenToken(options, { env, cwd }) ?? (own ? readToken(own.tokenFolders) : undefined)
  if (token === undefined) {
    const ways = 'or --token-file, CLUSTERDECK_TOKEN, CLUSTERDECK_TOKEN_FILE'
    throw new DeckError('unauthenticated',
      `--token: expected the token of the master at ${named} (${ways}), received none`)
  }
  return { url, token, fingerprint: own?.fingerprint ?? null, recipient: own?.recipient ?? null, dataDir,
    app: own?.app ?? null }
}

/** Finds the master that has followed. */
export async function findNext ({ dataDir, below }: Master, options: Said, place: Place): Promise<Master> {
  const next = await findMaster({ ...options, dataDir, name: undefined, app: undefined }, place)
  return below ? hostOf(next) : next
}

/** Finds the master of a data folder, whatever else the shell names. `dataDir`: absolute. */
export async function findMasterAt (dataDir: string, { env, cwd }: Place): Promise<Master> {
  return await findMaster({ dataDir }, { env: withoutPlace(env), cwd })
}

/** Where somebody looks at several apps, these variables are meant for one of them at most. */
export function withoutPlace (env: Place['env']): Place['env'] {
  return { ...env, CLUSTERDECK_URL: undefined, CLUSTERDECK_TOKEN: undefined, CLUSTERDECK_TOKEN_FILE: undefined,
    CLUSTERDECK_NAME: undefined, CLUSTERDECK_APP: undefined, CLUSTERDECK_DATA_DIR: undefined }
}

/**
 * Finds the master of an app, or the host where all of its apps are meant, or no app is named and this folder is of
 * none. `others`: codes of what findMaster() may say where that is so
 */
export async function findMasterOrHost (options: Said & { host?: true, apps?: string }, place: Place,
  others: readonly ErrorCode[] = []): Promise<Master>
{
  const wanted = options.host ? '--host' : options.apps === undefined ? null : '--apps'
  if (wanted !== null) {
    const flag = flagOfDeck(options)
    if (flag !== null && flag !== '--url') throw misuse(wanted, `without ${flag}`, 'both')
    return hostOf(flag === null ? expectHost(place.env) : await findMaster(options, place))
  }
  try {
    return await findMaster(options, place)
  } catch (error) {
    if (!(error instanceof DeckError)) throw error
    const isOfNone = error.details.isFolderOfNone || (others.includes(error.code) && !namesDeck(options, place.env))
    const host = isOfNone ? findHost(place.env) : null
    if (host === null) throw error
    return hostOf(host)
  }
}

/** Finds the host of the app that is meant, or that of this user where no app that runs is meant. */
export async function findHostMeant (options: Said, place: Place): Promise<Master> {
  return hostOf(await findMasterOrHost(options, place, ['app-not-running']))
}

/** `master`: of a host, which a deck in the foreground is, too, or of an app of it */
function hostOf (master: Master): Master {
  const { hostUrl: url, hostDir: dataDir } = master.app ?? { hostUrl: master.url, hostDir: master.dataDir }
  return { ...master, url, dataDir, app: null, below: '/host' }
}

async function whyNone ({ folder, isNamed }: DataFolder, env: Place['env']): Promise<DeckError> {
  // A host that does not answer is another matter.
  const apps = await appsOfHost(env).catch(() => [])
  const app = apps.find((each) => each.dataDir === folder)
  if (app && !isOpen(app)) return notRunning(app)
  if (!isNamed && apps.some(({ view }) => view !== null) && !existsSync(folder))
    return misuse('app', `one of ${apps.map(({ name }) => name).join(', ')}, as this is the folder of none`, 'none', {
      details: { isFolderOfNone: true }
    })
  return new DeckError('no-master',
    `no master is running on ${folder}: it has no master.json (another folder: --data-dir; another machine: --url)`)
}

/** @returns the pid of the master that runs there; null: none, or another user's */
export function findRunning (dataDir: string, env: Place['env']): number | null {
  // EACCES: another user's.
  return attempt(() => {
    const [master] = readAnnounced({ folder: dataDir, isNamed: true }, env)?.recipient.processes ?? []
    return master && isAlive(master) ? master.pid : null
  })
}

/** Finds a deck of this user by its name, in whatever folder it is. Returns its data folder; null: no name is given. */
async function findByName (options: Said, env: Place['env']): Promise<string | null> {
  const rest = { ...options, name: undefined }
  const flag = flagOfDeck(rest)
  if (options.name !== undefined && flag !== null) throw misuse('--name', `without ${flag}`, 'both')
  const isPlaced = namesDeck(rest, { ...env, CLUSTERDECK_NAME: undefined })
  const name = options.name ?? (isPlaced ? undefined : env.CLUSTERDECK_NAME || undefined)
  if (name === undefined) return null
  const running = decksHere(env)
  const decks = running.filter((each) => each.name === name)
  if (decks.length > 0) return onlyOne('--name', decks).dataDir
  const { apps, problem } = await knownApps(env)
  if (problem) throw problem
  const app = apps.find((each) => each.name === name)
  // One that runs is not in the list where others could write that.
  if (app && isOpen(app) && app.dataDir !== null) return app.dataDir
  if (app) throw notRunning(app)
  const names = new Set(running.map((each) => each.name))
  const others = apps.map((each) => each.name).filter((each) => !names.has(each))
  const known = [names.size === 0 ? 'none runs' : `running: ${[...names].join(', ')}`,
    ...(others.length === 0 ? [] : [`not running: ${others.join(', ')}`])]
  throw new DeckError('no-master',
    `no deck of this user is called ${JSON.stringify(name)}${didYouMean(name, [...names, ...others])}; ${
      known.join('; ')
    }`)
}

async function findDataDir (options: Said, env: Place['env'], cwd: string): Promise<DataFolder> {
  const named = options.dataDir ?? (env.CLUSTERDECK_DATA_DIR || undefined)
  if (named !== undefined) return { folder: path.resolve(cwd, named), isNamed: true }
  const file = await readConfigFile(env.CLUSTERDECK_CONFIG || undefined, cwd)
  const app = options.app ?? (env.CLUSTERDECK_APP || undefined)
  // A deck that is named by its address need not be one of the apps.
  const isElsewhere = app === undefined && (options.url ?? (env.CLUSTERDECK_URL || undefined)) !== undefined
  const place = dataFolder(isElsewhere ? { shared: file, own: null, dataDir: null } : pickApp(file, app, cwd), cwd)
  if (app !== undefined || isElsewhere || readRunning(place, env) !== null) return place
  const behind = dataDirBehindLink(cwd, env)
  return behind === null ? place : { folder: behind, isNamed: true }
}

/**
 * Finds a deck that was started in this folder through a symbolic link that led elsewhere then.
 * @returns its data folder; null: there is none, or more than one
 */
function dataDirBehindLink (cwd: string, env: Place['env']): string | null {
  if (asNamed(cwd).real === cwd) return null
  const [deck, ...others] = runningDecks(env).filter((each) => each.cwd === cwd)
  return deck && others.length === 0 ? deck.dataDir : null
}

/**
 * An app of a host is reached at its host, by what the folder of the host says of address, processes and token. What
 * the folder of the app says may have come with its code, as out of a repository: it only tells which host, of the same
 * user.
 * @throws {DeckError} data-dir-unusable, unauthenticated
 */
function readRunning (place: DataFolder, env: Place['env']): Running | null {
  const announced = readAnnounced(place, env)
  if (announced === null || announced.host === null)
    return announced && { ...announced, tokenFolders: [place.folder, announced.folder], app: null }
  const { folder, path: below } = announced.host
  const host = readAnnounced({ folder, isNamed: true }, env)
  if (host === null || host.recipient.owner !== announced.recipient.owner) return null
  return { ...host, url: `${host.url}${below}`, tokenFolders: [folder, host.folder],
    app: { name: path.basename(below), hostUrl: host.url, hostDir: folder } }
}

function checkedUrl (url: string | undefined): string | null {
  if (url === undefined) return null
  const { protocol, origin, pathname } = URL.canParse(url) ? new URL(url) : { protocol: '', origin: '', pathname: '' }
  if (/^https?:$/.test(protocol)) return `${origin}${pathname.replace(/\/+$/, '')}`
  throw misuse('--url', 'an address such as http://127.0.0.1:9777', JSON.stringify(url))
}
