import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { errorText } from '../errors.ts'
import { readPackage, resolveConfigured, type Place } from '../releases/resolve.ts'
import { workspaceFolder } from '../releases/workspace.ts'
import { homeFolder } from '../system/home-folder.ts'
import { loadPosix } from '../system/posix.ts'
import { userId, userName } from '../system/user.ts'
import { lookThroughApp, type AppFiles } from '../releases/app-files.ts'
import { descriptorsOf, isThere, lookAtDisk, lookAtMachine, type Disk, type Machine } from './machine.ts'
import { appNodeVersion } from './node-lines.ts'
import type { Config } from '../config/config.ts'
import type { Setting } from '../api/shapes.ts'
import type { Health } from '../words/health.ts'

/** All that the checks go by, as plain data. */
export type Facts = {
  /** wall clock, ms */
  now: number,
  config: Config,
  /** the same by the names of the options, and where each is from */
  settings: readonly Setting[],
  /** null: none sets an option */
  configFile: string | null,
  /** of the deck */
  name: string,
  /** of this user */
  home: string | null,
  /** `name`: or the number of one without a name */
  user: { isRoot: boolean, name: string },
  /** of the code; null: it is not there */
  place: Place | null,
  /** why the app could not have release folders */
  copyRefusal: string | null,
  files: AppFiles | null,
  package: { dependencies: readonly string[], engines: string | null },
  /** on which clusterdeck runs */
  ownNodeVersion: string,
  /** on which the app runs; null: another program runs it */
  nodeVersion: string | null,
  hasNvm: boolean,
  machine: Machine,
  /** of the data folder */
  disk: Disk,
  /** whether dispatch "sticky" is possible here */
  canStick: boolean,
  /** the app's, where a variable says it */
  port: string | null,
  /** null: it has not been started */
  running: Running | null
}
/** What a running deck knows of itself. */
export type Running = {
  health: Health,
  master: { version: string, rssBytes: number, isShared: boolean },
  installedVersion: string,
  /** by a keeper */
  isKept: boolean,
  desiredWorkers: number,
  workers: readonly { pid: number | null, rssBytes: number | null, openConnections: number | null }[],
  /** it listens */
  isServer: boolean,
  /** of the release that runs; `commit`: git has exported it */
  releaseMode: string,
  historyProblem: string | null,
  /** by the app into the folder of its release; `unknown`: it could not be looked through in time */
  written: Written | 'unknown' | null,
  /** the newest of the workers that were told to go and ended with open requests, under the present drain.deadlineMs */
  cutOff: { at: string, requests: number, count: number } | null,
  /** that a request has taken of late, at least */
  longestMs: number | null,
  unanswered: readonly { library: string | null, message: string }[],
  /** that runs */
  release: string,
  /** requests of the last five minutes of each release, the newest last, and how many were answered by 5xx */
  answers: readonly { release: string, requests: number, failed: number }[],
  /** 5xx in the first seconds of workers, and at other times; null: not known */
  serverErrors: { early: number, later: number } | null,
  /** wall clock, ms */
  newestEventAt: number | null,
  /** the size of the newest release folder, as far as it is no link */
  releaseBytes: number | null
}
export type Written = { release: string, copy: string, home: string, files: readonly string[] }
export type Known = Omit<Running, 'installedVersion'>

const LOOK_WITHIN_MS = 3000
const OWN_PACKAGE = new URL('../../package.json', import.meta.url)

/** `env`: what workers inherit; `known`: null: no master runs; `pids`: of the master and its keeper */
export async function gatherFacts (
  { env, known, pids = [], nodeVersion, now = Date.now, ...given }: Pick<Facts,
    'config' | 'settings' | 'configFile' | 'name'> & { env: Record<string, string | undefined>, known: Known | null,
    pids?: readonly number[], nodeVersion?: string | null, now?: () => number }
): Promise<Facts> {
  const { config } = given
  const home = homeFolder(env)
  const deadline = performance.now() + LOOK_WITHIN_MS
  const place = await resolveConfigured({ ...config, mode: config.releases.mode }).catch(() => null)
  const except = [config.dataDir,
    ...place
      ? [...config.releases.shared, ...config.releases.exclude].map((name) =>
        path.join(place.folder, name).replace(/\/$/, '')
      )
      : []]
  const [files, copyRefusal, manifest, machine, disk, installedVersion, hasNvm] = await Promise.all([
    place && lookThroughApp(place.folder, { except, env, isLate: () => performance.now() > deadline }),
    place && workspaceFolder(place.folder).then(() => null, errorText),
    place && readPackage(place.folder),
    lookAtMachine({ pids, env }),
    lookAtDisk(config.dataDir),
    readInstalledVersion(),
    home !== null && isThere(path.join(home, '.nvm', 'nvm.sh'))
  ])
  const worker = known?.workers.find(({ pid }) => pid !== null)?.pid
  return { ...given, now: now(), home, user: { isRoot: userId() === 0, name: userName() }, place, copyRefusal, files,
    package: { dependencies: Object.keys(Object(manifest?.dependencies)),
      engines: textOrNull(Object(manifest?.engines).node) }, ownNodeVersion: process.version,
    nodeVersion: nodeVersion === undefined
      ? appNodeVersion({
        release: { runtime: config.runtime,
          node: config.appNode && (config.runtime !== 'other' || config.entry === config.appNode.file)
            ? config.appNode
            : undefined },
        master: { nodeVersion: process.version }
      })
      : nodeVersion, hasNvm,
    machine: { ...machine, descriptors: (worker ? descriptorsOf(worker) : null) ?? machine.descriptors }, disk,
    canStick: process.platform === 'linux' && loadPosix() !== null, port: config.env.PORT ?? env.PORT ?? null,
    running: known && { ...known, installedVersion } }
}

/** Another version may have been installed since this process began. */
async function readInstalledVersion () {
  return String(JSON.parse(await readFile(OWN_PACKAGE, 'utf8')).version)
}

function textOrNull (value: unknown): string | null {
  return typeof value === 'string' ? value : null
}
