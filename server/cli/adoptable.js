import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync } from 'node:fs'
import path from 'node:path'
import { findConfigFile } from '../config/config.js'
import { readConfigFile } from '../config/file.js'
import { appsOf } from '../config/apps.js'
import { DeckError } from '../errors.js'
import { namesOf } from '../import/convert.js'
import { lookUpScript } from '../import/look.js'
import { flagsOfProcess, variablesOfProcess } from '../import/process-order.js'
import { groupsOf } from '../import/process-list.js'
import { findPm2 } from '../import/running-pm2.js'
import { clusterAppsOf, factsOf, firstOf, holdersOfPort, namesInPm2, pm2DaemonAt, processText } from '../programs/holder.js'
import { whyElsewhere } from '../programs/takeover.js'
import { oneLine } from '../system/one-line.js'
import { identifyProcess, signalProcess } from '../system/process-identity.js'
import { descendantsOf } from '../system/process-tree.js'
import { unitAround } from '../systemd/unit-of.js'
import { orderOfApp, orderOfStart } from './app-orders.js'
import { writePm2Config } from './import.js'

/** @typedef {import('./program.js').Terminal} Terminal */
/** @typedef {import('./app-orders.js').AppOrder} AppOrder */
/** @typedef {import('../system/process-identity.js').ProcessIdentity} ProcessIdentity */

/**
 * A program that an app of the host can take the place of.
 * @typedef {object} Adoptable
 * @property {string} text  for people
 * @property {import('../programs/holder.js').ProcessFacts} facts  of one of its processes
 * @property {ProcessIdentity[]} processes  that end with it
 * @property {number[]} listening  processes that have its sockets
 * @property {string} [except]  the folder of Unix sockets that are of these processes themselves
 * @property {boolean} isAlone  whether nobody else has sockets in these processes
 * @property {AppOrder} order  what the host is to run
 * @property {() => Promise<void>} stop  asks it to end
 * @property {string} stopText  the same for people
 * @property {string[]} afterwards  what is to be known once it has ended
 */

/**
 * @param {{ pid?: string, port?: string, workers?: string, name?: string }} options  one of `pid` and `port` @param {Terminal} terminal
 * @returns {Promise<Adoptable>}
 * @throws {DeckError} usage, not-possible
 */
export async function programAt ({ pid, port, workers, name }, terminal) {
  const first = pid === undefined ? holderAt(portIn(String(port))) : pidIn(pid)
  const facts = factsOf(first)
  if (!facts) throw new DeckError('usage', `--pid: expected a process that runs, received ${first}`)
  const processes = descendantsOf(first)
  refuseOthers(facts, { processes, port })
  const unit = unitAround(first)
  const copies = processes.filter((each) => factsOf(each)?.env.NODE_UNIQUE_ID !== undefined).length
  return {
    text: processText(facts),
    facts,
    processes: processes.map(identifyProcess),
    listening: processes,
    isAlone: true,
    order: await orderOfProcess(facts, { workers: workers ?? String(Math.max(1, copies)), name, isGiven: workers !== undefined }),
    ...(unit === null ? stopBySignal(identifyProcess(first)) : stopByUnit(unit)),
    afterwards: unit === null ? [] : [`${unit.name} must not start it again: systemctl ${unit.isOfUser ? '--user ' : ''}disable ${unit.name}`]
  }
}

/**
 * @param {string[]} names  none: all that run @param {{ workers?: string, name?: string }} options @param {Terminal} terminal
 * @returns {Promise<Adoptable[]>}
 * @throws {DeckError} usage, not-possible, invalid-config
 */
export async function programsOfPm2 (names, options, terminal) {
  const pm2 = await findPm2(terminal)
  const groups = groupsOf(await pm2.list()).map((group) => ({ group, running: group.filter(({ status, pm_pid: pid }) => status === 'online' && Number(pid) > 0) }))
  const found = namesOf(groups.map(({ group: [first] }) => ({ name: first.name, script: first.pm_exec_path })), undefined).map((app, index) => ({ app, ...groups[index] }))
  const wanted = found.filter(({ group: [{ name }], running }) => names.length === 0 ? running.length > 0 : names.includes(String(name)))
  checkNames(names, found.map(({ group: [{ name }] }) => String(name)))
  if (wanted.length === 0) throw new DeckError('not-possible', '--pm2: expected apps of PM2 that run, received none')
  const idle = wanted.find(({ running }) => running.length === 0)
  if (idle) throw new DeckError('usage', `--pm2: expected apps of PM2 that run, received ${idle.group[0].name}, which is stopped: clusterdeck start starts it`)
  if (options.name !== undefined && wanted.length > 1) throw new DeckError('usage', `--name: expected with one app, received ${wanted.length}`)
  const file = (await readConfigFile(undefined, terminal.cwd))?.file ?? await writeFor(mustHave(factsOf(pm2.pid), 'PM2'), terminal)
  const orders = await Promise.all(wanted.map(({ app }) => orderInFile(file, app, options, terminal)))
  return wanted.map(({ group: [first], running }, index) => {
    const pids = running.map(({ pm_pid: pid }) => Number(pid))
    const isCluster = first.exec_mode === 'cluster_mode'
    const ids = running.map(({ pm_id: id }) => Number(id))
    const all = pids.flatMap((pid) => descendantsOf(pid))
    return {
      text: oneLine(`${first.name} of PM2 (pid ${pids.join(', ')})`),
      facts: mustHave(factsOf(pids[0]), `${first.name} of PM2`),
      processes: all.map(identifyProcess),
      // Those of an app in cluster mode are with the daemon.
      listening: isCluster ? [...all, pm2.pid] : all,
      except: pm2.home,
      isAlone: !isCluster || clusterAppsOf(pm2.pid).length <= 1,
      order: orders[index],
      stop: () => pm2.stop(ids),
      stopText: `pm2 stop ${ids.join(' ')}`,
      afterwards: ['PM2 lists it as stopped; so that it stays so after a boot: pm2 save']
    }
  })
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
  if (facts.cwd === '' || Object.keys(facts.env).length === 0) throw new DeckError('not-possible', `process ${pid} is of another user (uid ${facts.user}): call this as that user, or by sudo`)
}

/**
 * A config file in its folder counts, as for `clusterdeck start` there; else its command line.
 * @param {import('../programs/holder.js').ProcessFacts} facts @param {{ workers: string, name?: string, isGiven: boolean }} how
 * @returns {Promise<AppOrder>}
 */
async function orderOfProcess (facts, { workers, name, isGiven }) {
  const { cwd } = facts
  const env = variablesOfProcess(facts)
  const named = name === undefined ? {} : { name }
  if (await findConfigFile({ env, cwd, isApart: true })) return orderOfStart({ ...named, ...(isGiven && { workers }) }, { env, cwd })
  const look = (/** @type {string} */ script, /** @type {string} */ folder) => lookUpScript(script, folder, env.PATH)
  return orderOfStart({ ...flagsOfProcess(facts, look), workers, ...named }, { env, cwd })
}

/** @param {string} file @param {string} app @param {{ workers?: string, name?: string }} options @param {Terminal} terminal @returns {Promise<AppOrder>} */
async function orderInFile (file, app, { workers, name }, terminal) {
  const found = await readConfigFile(file, terminal.cwd)
  const apps = found ? appsOf(found) : new Map()
  const flags = { ...(workers !== undefined && { workers }), ...(name !== undefined && { name }) }
  if (apps.size === 0) return orderOfStart({ config: file, ...flags }, terminal)
  const known = apps.get(app)
  if (!known) throw new DeckError('invalid-config', `--pm2: expected ${app} among the apps of ${file}, received ${[...apps.keys()].join(', ')}: clusterdeck import --pm2 --output other.mjs shows what it would be`)
  const order = orderOfApp({ name: app, dataDir: '', autostart: true, ...known, dependsOn: [] }, file, terminal)
  return { ...order, ...(name !== undefined && { name }), flags: { ...order.flags, ...flags } }
}

/** The host of that user is to read it, also where root calls. @param {import('../programs/holder.js').ProcessFacts} daemon @param {Terminal} terminal @returns {Promise<string>} */
async function writeFor ({ user, groups }, terminal) {
  const file = await writePm2Config(terminal)
  if (process.geteuid?.() === 0) chownSync(file, user, groups[0])
  return file
}

/** @param {string[]} names @param {string[]} known @throws {DeckError} usage */
function checkNames (names, known) {
  const unknown = names.find((name) => !known.includes(name))
  if (unknown !== undefined) throw new DeckError('usage', `--pm2: expected some of ${known.join(', ') || 'none'}, the apps of PM2, received ${JSON.stringify(unknown)}`)
}

/** @template T @param {T | null} found @param {string} what @returns {T} @throws {DeckError} not-possible */
function mustHave (found, what) {
  if (found === null) throw new DeckError('not-possible', `${what} has ended meanwhile`)
  return found
}

/** @param {ProcessIdentity} identity @returns {Pick<Adoptable, 'stop' | 'stopText'>} */
function stopBySignal (identity) {
  return { stop: async () => signalProcess(identity, 'SIGTERM'), stopText: `kill -TERM ${identity.pid}` }
}

/**
 * By then this process may have taken the rights of another user, who may not stop the service. So a shell is started before, and waits.
 * @param {import('../systemd/unit-of.js').ServiceUnit} unit @returns {Pick<Adoptable, 'stop' | 'stopText'>}
 */
function stopByUnit ({ name, isOfUser }) {
  const words = ['systemctl', ...(isOfUser ? ['--user'] : []), 'stop', name]
  const child = spawn('/bin/sh', ['-c', 'read -r now && exec "$@"', 'sh', ...words], { stdio: ['pipe', 'ignore', 'pipe'] })
  const ended = once(child, 'exit')
  const parts = [child, /** @type {import('node:net').Socket} */ (child.stdin), /** @type {import('node:net').Socket} */ (child.stderr)]
  // Where nobody tells it to, it ends with this process.
  for (const part of parts) part.unref()
  return {
    async stop () {
      for (const part of parts) part.ref()
      child.stdin.end('now\n')
      const said = await child.stderr.setEncoding('utf8').toArray()
      const [code] = await ended
      if (code !== 0) throw new DeckError('not-possible', `${words.join(' ')} failed: ${oneLine(said.join('').trim()) || `exit code ${code}`}`)
    },
    stopText: words.join(' ')
  }
}
