import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { errorText } from '../errors.js'
import { readPackage, resolveConfigured } from '../releases/resolve.js'
import { workspaceFolder } from '../releases/workspace.js'
import { homeFolder } from '../system/home-folder.js'
import { loadPosix } from '../system/posix.js'
import { userId, userName } from '../system/user.js'
import { lookThroughApp } from '../releases/app-files.js'
import { descriptorsOf, isThere, lookAtDisk, lookAtMachine } from './machine.js'
import { appNodeVersion } from './node-lines.js'

/**
 * All that the checks go by, as plain data.
 * @typedef {object} Facts
 * @property {number} now  wall clock, ms
 * @property {import('../config/config.js').Config} config
 * @property {readonly import('../config/settings.js').Setting[]} settings  the same by the names of the options, and where each is from
 * @property {string | null} configFile  null: none sets an option
 * @property {string} name  of the deck
 * @property {string | null} home  of this user
 * @property {{ isRoot: boolean, name: string }} user  `name`: or the number of one without a name
 * @property {import('../releases/resolve.js').Place | null} place  of the code; null: it is not there
 * @property {string | null} copyRefusal  why the app could not have release folders
 * @property {import('../releases/app-files.js').AppFiles | null} files
 * @property {{ dependencies: readonly string[], engines: string | null }} package
 * @property {string} ownNodeVersion  on which clusterdeck runs
 * @property {string | null} nodeVersion  on which the app runs; null: another program runs it
 * @property {boolean} hasNvm
 * @property {import('./machine.js').Machine} machine
 * @property {import('./machine.js').Disk} disk  of the data folder
 * @property {boolean} canStick  whether dispatch "sticky" is possible here
 * @property {string | null} port  the app's, where a variable says it
 * @property {Running | null} running  null: it has not been started
 *
 * What a running deck knows of itself.
 * @typedef {object} Running
 * @property {import('../health.js').Health} health
 * @property {{ version: string, rssBytes: number, isShared: boolean }} master
 * @property {string} installedVersion
 * @property {boolean} isKept  by a keeper
 * @property {number} desiredWorkers
 * @property {readonly { pid: number | null, rssBytes: number | null, openConnections: number | null }[]} workers
 * @property {boolean} isServer  it listens
 * @property {string} releaseMode  of the release that runs; `commit`: git has exported it
 * @property {string | null} historyProblem
 * @property {Written | 'unknown' | null} written  by the app into the folder of its release; `unknown`: it could not be looked through in time
 * @property {{ at: string, requests: number, count: number } | null} cutOff  the newest of the workers that were told to go and ended with open requests, under the present drain.deadlineMs
 * @property {number | null} longestMs  that a request has taken of late, at least
 * @property {readonly { library: string | null, message: string }[]} unanswered
 * @property {{ early: number, later: number } | null} serverErrors  5xx in the first seconds of workers, and at other times; null: not known
 * @property {number | null} newestEventAt  wall clock, ms
 * @property {number | null} releaseBytes  the size of the newest release folder, as far as it is no link
 *
 * @typedef {{ release: string, copy: string, home: string, files: readonly string[] }} Written
 * @typedef {Omit<Running, 'installedVersion'>} Known
 */

const LOOK_WITHIN_MS = 3000
const OWN_PACKAGE = new URL('../../package.json', import.meta.url)

/**
 * @param {Pick<Facts, 'config' | 'settings' | 'configFile' | 'name'> & { env: Record<string, string | undefined>, known: Known | null, pids?: readonly number[], nodeVersion?: string | null, now?: () => number }} parts
 *   `env`: what workers inherit; `known`: null: no master runs; `pids`: of the master and its keeper
 * @returns {Promise<Facts>}
 */
export async function gatherFacts ({ env, known, pids = [], nodeVersion, now = Date.now, ...given }) {
  const { config } = given
  const home = homeFolder(env)
  const deadline = performance.now() + LOOK_WITHIN_MS
  const place = await resolveConfigured({ ...config, mode: config.releases.mode }).catch(() => null)
  const except = [config.dataDir, ...place ? [...config.releases.shared, ...config.releases.exclude].map((name) => path.join(place.folder, name).replace(/\/$/, '')) : []]
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
  return {
    ...given,
    now: now(),
    home,
    user: { isRoot: userId() === 0, name: userName() },
    place,
    copyRefusal,
    files,
    package: { dependencies: Object.keys(Object(manifest?.dependencies)), engines: textOrNull(Object(manifest?.engines).node) },
    ownNodeVersion: process.version,
    nodeVersion: nodeVersion === undefined ? appNodeVersion({ release: config, master: { nodeVersion: process.version } }) : nodeVersion,
    hasNvm,
    machine: { ...machine, descriptors: (worker ? descriptorsOf(worker) : null) ?? machine.descriptors },
    disk,
    canStick: process.platform === 'linux' && loadPosix() !== null,
    port: config.env.PORT ?? env.PORT ?? null,
    running: known && { ...known, installedVersion }
  }
}

/** Another version may have been installed since this process began. */
async function readInstalledVersion () {
  return String(JSON.parse(await readFile(OWN_PACKAGE, 'utf8')).version)
}

/** @param {unknown} value @returns {string | null} */
function textOrNull (value) {
  return typeof value === 'string' ? value : null
}
