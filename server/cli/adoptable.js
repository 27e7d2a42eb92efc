import path from 'node:path'
import { findConfigFile } from '../config/config.js'
import { readConfigFile } from '../config/file.js'
import { appsOf } from '../config/apps.js'
import { DeckError } from '../errors.js'
import { namesOf } from '../import/convert.js'
import { lookUpScript } from '../import/look.js'
import { flagsOfProcess, variablesOfProcess } from '../import/process-order.js'
import { groupsOf, hasCron, isJob } from '../import/process-list.js'
import { findPm2 } from '../import/running-pm2.js'
import { clusterAppsOf, factsOf, firstOf, holdersOfPort, namesInPm2, pm2DaemonAt, processText } from '../programs/holder.js'
import { whyElsewhere } from '../programs/takeover.js'
import { oneLine } from '../system/one-line.js'
import { SHELL_VARIABLE } from '../system/own-variables.js'
import { identifyProcess, signalProcess } from '../system/process-identity.js'
import { ownerOfProcess } from '../system/process-owner.js'
import { descendantsOf } from '../system/process-tree.js'
import { describeShell } from '../system/shell-limits.js'
import { userId } from '../system/user.js'
import { disableText, stopUnit, stopWords, unitAround } from '../systemd/unit-of.js'
import { orderOfApp, orderOfStart } from './app-orders.js'
import { writePm2Config } from './import.js'

/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('./app-orders.js').AppOrder} AppOrder */
/** @typedef {import('../config/apps.js').ConfigFile} ConfigFile */
/** @typedef {import('../programs/root-line.js').LineToRoot} LineToRoot */
/** @typedef {import('../system/process-identity.js').ProcessIdentity} ProcessIdentity */

/**
 * A program that an app of the host can take the place of.
 * @typedef {object} Adoptable
 * @property {string} text  for people
 * @property {ProcessIdentity[]} processes  that end with it
 * @property {number[]} listening  processes that have its sockets
 * @property {string} [except]  the folder of Unix sockets that are of these processes themselves
 * @property {boolean} [isJob]  whether it serves nobody and ends by itself, so that nothing may run beside it
 * @property {boolean} isAlone  whether nobody else has sockets in these processes
 * @property {AppOrder} order  what the host is to run
 * @property {() => Promise<void>} stop  asks it to end
 * @property {string} stopText  the same for people
 * @property {string[]} afterwards  what is to be known once it has ended
 *
 * `inFile`: what it is called in a config file that "clusterdeck import" has made of it.
 * `ids`: of all its processes; `hasCron`: PM2 starts it by the clock, also once it is stopped.
 * @typedef {{ name: string, inFile: string, isCluster: boolean, isJob: boolean, hasCron: boolean, ids: number[], running: { pid: number, id: number }[] }} Pm2App
 */

/**
 * @param {{ pid?: string, port?: string }} options  one of them @returns {number} the first process of the program that is meant
 * @throws {DeckError} usage, not-possible
 */
export function processOf ({ pid, port }) {
  return pid === undefined ? holderAt(portIn(String(port))) : pidIn(pid)
}

/**
 * @param {{ pid?: string, port?: string, workers?: string, name?: string }} options  one of `pid` and `port`
 * @param {LineToRoot | null} [root]
 * @returns {Promise<Adoptable>}
 * @throws {DeckError} usage, not-possible
 */
export async function programAt ({ pid, port, workers, name }, root = null) {
  const first = processOf({ pid, port })
  const facts = factsOf(first)
  if (!facts) throw new DeckError('usage', `--pid: expected a process that runs, received ${first}`)
  const processes = descendantsOf(first)
  refuseOthers(facts, { processes, port })
  const unit = unitAround(first)
  const copies = processes.filter((each) => factsOf(each)?.env.NODE_UNIQUE_ID !== undefined).length
  return {
    text: processText(facts),
    processes: processes.map(identifyProcess),
    listening: processes,
    isAlone: true,
    order: await orderOfProcess(facts, { workers: workers ?? String(Math.max(1, copies)), name, isGiven: workers !== undefined }),
    ...(unit === null ? stopBySignal(identifyProcess(first)) : stopByUnit(unit, root)),
    afterwards: unit === null ? [] : [disableText(unit)]
  }
}

/**
 * @param {string[]} names  none: all that run @param {{ workers?: string, name?: string }} options @param {Terminal} terminal
 * @returns {Promise<{ name: string, find: () => Promise<Adoptable> }[]>} `find`: what there is of it by then, as PM2 may have restarted it
 * @throws {DeckError} usage, not-possible, invalid-config
 */
export async function turnsOfPm2 (names, options, terminal) {
  const pm2 = await findPm2(terminal)
  const wanted = wantedOf(appsIn(await pm2.list()), names)
  if (options.name !== undefined && wanted.length > 1) throw new DeckError('usage', `--name: expected with one app, received ${wanted.length}`)
  const { cwd } = terminal
  const found = await readConfigFile(undefined, cwd) ?? await writeConfig(terminal)
  return wanted.map(({ name, inFile }) => {
    const order = orderInFile(/** @type {ConfigFile} */ (found), inFile, options, terminal)
    return {
      name,
      async find () {
        const app = appsIn(await pm2.list()).find((each) => each.inFile === inFile)
        if (!app || !isThere(app)) throw new DeckError('not-possible', `${name} of PM2 does not run at this moment: call clusterdeck adopt --pm2 ${name} once it does`)
        return programOfPm2(app, pm2, order)
      }
    }
  })
}

/** It is read as one that was there before: by nobody else's hand. @param {Terminal} terminal */
async function writeConfig (terminal) {
  await writePm2Config(terminal)
  return await readConfigFile(undefined, terminal.cwd)
}

/** @param {Pm2App} app @param {import('../import/running-pm2.js').RunningPm2} pm2 @param {AppOrder} order @returns {Adoptable} @throws {DeckError} not-possible */
function programOfPm2 ({ name, isCluster, isJob, hasCron, ids: known, running }, pm2, order) {
  const pids = running.map(({ pid }) => pid)
  const ids = hasCron ? known : running.map(({ id }) => id)
  const how = hasCron ? 'delete' : 'stop'
  const other = pids.find((pid) => ownerOfProcess(pid)?.user !== userId())
  if (other !== undefined) throw new DeckError('not-possible', `process ${other}, which PM2 has for ${name}, is not of the user of PM2 (uid ${userId()}): an app that PM2 runs as another user is not taken over`)
  const all = pids.flatMap((pid) => descendantsOf(pid))
  return {
    text: oneLine(`${name} of PM2 (${pids.length > 0 ? `pid ${pids.join(', ')}` : 'a job between two runs'})`),
    isJob,
    processes: all.map(identifyProcess),
    // Those of an app in cluster mode are with the daemon.
    listening: isCluster ? [...all, pm2.pid] : all,
    except: pm2.home,
    isAlone: !isCluster || clusterAppsOf(pm2.pid).length <= 1,
    order,
    stop: () => pm2.stop(ids, how),
    stopText: `pm2 ${how} ${ids.join(' ')}`,
    afterwards: [`PM2 lists it ${hasCron ? 'no more, as its cron_restart would have started it again' : 'as stopped'}; so that it stays so after a boot: pm2 save`]
  }
}

/** @param {unknown[]} list  of PM2 @returns {Pm2App[]} */
function appsIn (list) {
  const groups = groupsOf(list)
  const inFile = namesOf(groups.map(([{ name, pm_exec_path: script }]) => ({ name, script })), undefined)
  return groups.map((group, index) => ({
    name: String(group[0].name),
    inFile: inFile[index],
    isCluster: group[0].exec_mode === 'cluster_mode',
    isJob: isJob(group[0]),
    hasCron: hasCron(group[0]),
    ids: group.map(({ pm_id: id }) => Number(id)),
    running: group.map(({ status, pm_pid: pid, pm_id: id }) => ({ pid: status === 'online' ? Number(pid) : 0, id: Number(id) })).filter(({ pid }) => pid > 0)
  }))
}

/** @param {Pm2App[]} apps @param {string[]} names  none: all that run @returns {Pm2App[]} @throws {DeckError} usage, not-possible */
function wantedOf (apps, names) {
  const unknown = names.find((each) => !apps.some(({ name }) => name === each))
  if (unknown !== undefined) throw new DeckError('usage', `--pm2: expected some of ${apps.map(({ name }) => name).join(', ') || 'none'}, the apps of PM2, received ${JSON.stringify(unknown)}`)
  const wanted = apps.filter((app) => names.length === 0 ? isThere(app) : names.includes(app.name))
  if (wanted.length === 0) throw new DeckError('not-possible', '--pm2: expected apps of PM2 that run, received none')
  const idle = wanted.find((app) => !isThere(app))
  if (idle) throw new DeckError('usage', `--pm2: expected apps of PM2 that run, received ${idle.name}, which is stopped: clusterdeck start starts it`)
  return wanted
}

/** @param {Pm2App} app @returns {boolean} whether PM2 runs it, now or at its times */
function isThere ({ running, isJob }) {
  return running.length > 0 || isJob
}

/** @param {string} text @returns {number} */
function portIn (text) {
  const port = Number(text)
  if (/^\d+$/.test(text) && port >= 1 && port <= 65_535) return port
  throw new DeckError('usage', `--port: expected a port from 1 to 65535, received ${JSON.stringify(text)}`)
}

/** @param {string} text @returns {number} */
function pidIn (text) {
  if (/^\d+$/.test(text) && Number(text) > 1) return Number(text)
  throw new DeckError('usage', `--pid: expected the number of a process, received ${JSON.stringify(text)}`)
}

/** @param {number} port @returns {number} the process that listens there @throws {DeckError} not-possible */
function holderAt (port) {
  const pids = holdersOfPort(port)
  if (pids === null) throw new DeckError('not-possible', `--port: expected a port of TCP on which a program listens, received ${port}, where none does`)
  if (pids.length === 0) throw new DeckError('not-possible', `--port: who listens on ${port} is not told to this user: expected a program of the same user; call this by sudo for one of another user`)
  return firstOf(pids)
}

/** @param {import('../programs/holder.js').ProcessFacts} facts @param {{ processes: readonly number[], port: string | undefined }} found @throws {DeckError} not-possible */
function refuseOthers (facts, { processes, port }) {
  const { pid } = facts
  const names = namesInPm2(facts)
  if (pm2DaemonAt(facts) !== null || names.length > 0) throw new DeckError('not-possible', `PM2 runs ${names.join(', ') || 'it'}, and would start it again: clusterdeck adopt --pm2 ${names.length === 1 ? names[0] : '<name>'}`)
  if (pid === 1 || facts.words[0].endsWith('/systemd')) throw new DeckError('not-possible', `systemd itself listens${port === undefined ? '' : ` on ${port}`}, for a socket unit: run clusterdeck start in the service of that unit instead, and no connection is refused either (clusterdeck help systemd)`)
  if (processes.some((each) => factsOf(each)?.env.CLUSTERDECK_SLOT !== undefined)) throw new DeckError('not-possible', 'that is a deck already: clusterdeck adopt <its folder> moves it into the host')
  if (/^docker-proxy$/.test(path.basename(facts.file || facts.words[0]))) throw new DeckError('not-possible', 'that port is of a container: what listens there is in it, and cannot be run here in its place')
  const reason = whyElsewhere(pid)
  if (reason !== null) throw new DeckError('not-possible', `process ${pid}: ${reason}`)
  if (facts.user !== userId() || facts.cwd === '' || Object.keys(facts.env).length === 0) throw new DeckError('not-possible', `process ${pid} is of another user (uid ${facts.user}): call this as that user, or by sudo`)
}

/**
 * A config file in its folder counts, as for `clusterdeck start` there; else its command line.
 * @param {import('../programs/holder.js').ProcessFacts} facts @param {{ workers: string, name?: string, isGiven: boolean }} how
 * @returns {Promise<AppOrder>}
 */
async function orderOfProcess (facts, { workers, name, isGiven }) {
  const { cwd } = facts
  /** @type {Record<string, string | undefined>} */
  const env = { ...variablesOfProcess(facts), [SHELL_VARIABLE]: describeShell(facts.pid) }
  const named = name === undefined ? {} : { name }
  if (await findConfigFile({ env, cwd, isApart: true })) return orderOfStart({ ...named, ...(isGiven && { workers }) }, { env, cwd })
  const look = (/** @type {string} */ script, /** @type {string} */ folder) => lookUpScript(script, folder, env.PATH)
  return orderOfStart({ ...flagsOfProcess(facts, look), workers, ...named }, { env, cwd })
}

/** @param {ConfigFile} found @param {string} app @param {{ workers?: string, name?: string }} options @param {Terminal} terminal @returns {AppOrder} */
function orderInFile (found, app, { workers, name }, terminal) {
  const { file } = found
  const apps = appsOf(found)
  const flags = { ...(workers !== undefined && { workers }), ...(name !== undefined && { name }) }
  if (apps.size === 0) return orderOfStart({ config: file, ...flags }, terminal)
  const known = apps.get(app)
  if (!known) throw new DeckError('invalid-config', `--pm2: expected ${app} among the apps of ${file}, received ${[...apps.keys()].join(', ')}: clusterdeck import --pm2 --output other.mjs shows what it would be`)
  const order = orderOfApp({ ...known, name: app, dataDir: '', dependsOn: [] }, file, terminal)
  return { ...order, ...(name !== undefined && { name }), flags: { ...order.flags, ...flags } }
}

/** @param {ProcessIdentity} identity @returns {Pick<Adoptable, 'stop' | 'stopText'>} */
function stopBySignal (identity) {
  return { stop: async () => signalProcess(identity, 'SIGTERM'), stopText: `kill -TERM ${identity.pid}` }
}

/** @param {import('../systemd/unit-of.js').ServiceUnit} unit @param {LineToRoot | null} root  may stop what this user may not @returns {Pick<Adoptable, 'stop' | 'stopText'>} */
function stopByUnit (unit, root) {
  const stopText = stopWords(unit).join(' ')
  return {
    async stop () {
      const failed = root && !unit.isOfUser ? root.stop() : await stopUnit(unit)
      if (failed !== null) throw new DeckError('not-possible', `${stopText} failed: ${failed}`)
    },
    stopText
  }
}
