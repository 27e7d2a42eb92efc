import path from 'node:path'
import { findConfigFile } from '../config/config.ts'
import { readConfigFile } from '../config/file.ts'
import { appsOf, type ConfigFile } from '../config/apps.ts'
import { DeckError } from '../errors.ts'
import { namesOf } from '../import/convert.ts'
import { lookUpScript } from '../import/look.ts'
import { flagsOfProcess, variablesOfProcess } from '../import/process-order.ts'
import { groupsOf, hasCron, isJob } from '../import/process-list.ts'
import { findPm2, type RunningPm2 } from '../import/running-pm2.ts'
import { clusterAppsOf, factsOf, firstOf, holdersOfPort, namesInPm2, pm2DaemonAt,
  processText } from '../programs/holder.ts'
import { whyElsewhere } from '../programs/takeover.ts'
import { oneLine } from '../system/one-line.ts'
import { TYPED_VARIABLE } from '../run-on.js'
import { SHELL_VARIABLE } from '../system/own-variables.ts'
import { identifyProcess, signalProcess, type ProcessIdentity } from '../system/process-identity.ts'
import { ownerOfProcess } from '../system/process-owner.ts'
import { descendantsOf } from '../system/process-tree.ts'
import { describeShell } from '../system/shell-limits.ts'
import { userId } from '../system/user.ts'
import { disableText, stopUnit, stopWords, unitAround, type ServiceUnit } from '../systemd/unit-of.ts'
import { orderOfApp, orderOfStart, type AppOrder } from './app-orders.ts'
import { writePm2Config } from '../import/cli.ts'
import { checkedCount, checkedForm, misuse } from './usage.ts'
import type { Terminal } from './program.ts'
import type { LineToRoot } from '../programs/root-line.ts'
import type { ProcessFacts } from '../programs/holder.ts'

/** A program that an app of the host can take the place of. */
export type Adoptable = {
  /** for people */
  text: string,
  /** that end with it */
  processes: ProcessIdentity[],
  /** processes that have its sockets */
  listening: number[],
  /** the folder of Unix sockets that are of these processes themselves */
  except?: string,
  /** whether it serves nobody and ends by itself, so that nothing may run beside it */
  isJob?: boolean,
  /** whether nobody else has sockets in these processes */
  isAlone: boolean,
  /** what the host is to run */
  order: AppOrder,
  /** asks it to end */
  stop: () => Promise<void>,
  /** the same for people */
  stopText: string,
  /** what is to be known once it has ended */
  afterwards: string[]
}
/**
 * `inFile`: what it is called in a config file that "clusterdeck import" has made of it. `ids`: of all its processes;
 * `hasCron`: PM2 starts it by the clock, also once it is stopped.
 */
type Pm2App = { name: string, inFile: string, isCluster: boolean, isJob: boolean, hasCron: boolean, ids: number[],
  running: { pid: number, id: number }[] }

/** Process 1 is no program that anything could take the place of. */
const PID = /^([2-9]|[1-9]\d+)$/

/**
 * `options`: one of them. Returns the first process of the program that is meant.
 * @throws {DeckError} usage, not-possible
 */
export function processOf ({ pid, port }: { pid?: string, port?: string }): number {
  if (pid !== undefined) return Number(checkedForm('--pid', PID, 'the number of a process', pid))
  return holderAt(checkedCount('--port', String(port), { max: 65_535 }))
}

/** `options`: one of `pid` and `port` @throws {DeckError} usage, not-possible */
export async function programAt (
  { pid, port, workers, name }: { pid?: string, port?: string, workers?: string, name?: string },
  root: LineToRoot | null = null
): Promise<Adoptable> {
  const first = processOf({ pid, port })
  const facts = factsOf(first)
  if (!facts) throw misuse('--pid', 'a process that runs', first)
  const processes = descendantsOf(first)
  const reason = whyNone(facts, { processes, port })
  if (reason !== null) throw new DeckError('not-possible', reason)
  const unit = unitAround(first)
  const copies = processes.filter((each) => factsOf(each)?.env.NODE_UNIQUE_ID !== undefined).length
  return { text: processText(facts), processes: processes.map(identifyProcess), listening: processes, isAlone: true,
    order: await orderOfProcess(facts, { workers: workers ?? String(Math.max(1, copies)), name,
      isGiven: workers !== undefined }),
    ...(unit === null ? stopBySignal(identifyProcess(first)) : stopByUnit(unit, root)),
    afterwards: unit === null ? [] : [disableText(unit)] }
}

/**
 * `names`: none: all that run. Returns `find`: what there is of it by then, as PM2 may have restarted it.
 * @throws {DeckError} usage, not-possible, invalid-config
 */
export async function turnsOfPm2 (names: string[], options: { workers?: string, name?: string },
  terminal: Terminal): Promise<{ name: string, find: () => Promise<Adoptable> }[]>
{
  const pm2 = await findPm2(terminal)
  const wanted = wantedOf(appsIn(await pm2.list()), names)
  if (options.name !== undefined && wanted.length > 1) throw misuse('--name', 'with one app', wanted.length)
  const { cwd } = terminal
  const found = await readConfigFile(undefined, cwd) ?? await writeConfig(terminal)
  return wanted.map(({ name, inFile }) => {
    const order = orderInFile(found as ConfigFile, inFile, options, terminal)
    return { name, async find () {
      const app = appsIn(await pm2.list()).find((each) => each.inFile === inFile)
      if (!app || !isThere(app))
        throw new DeckError('not-possible',
          `${name} of PM2 does not run at this moment: call clusterdeck adopt --pm2 ${name} once it does`)
      return programOfPm2(app, pm2, order)
    } }
  })
}

/** It is read as one that was there before: by nobody else's hand. */
async function writeConfig (terminal: Terminal) {
  await writePm2Config(terminal)
  return await readConfigFile(undefined, terminal.cwd)
}

/** @throws {DeckError} not-possible */
function programOfPm2 ({ name, isCluster, isJob, hasCron, ids: known, running }: Pm2App, pm2: RunningPm2,
  order: AppOrder): Adoptable
{
  const pids = running.map(({ pid }) => pid)
  const ids = hasCron ? known : running.map(({ id }) => id)
  const how = hasCron ? 'delete' : 'stop'
  const other = pids.find((pid) => ownerOfProcess(pid)?.user !== userId())
  if (other !== undefined)
    throw new DeckError('not-possible',
      `process ${other}, which PM2 has for ${name}, is not of the user of PM2 (uid ${userId()}): an app that PM2 runs as another user is not taken over`)
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
    afterwards: [
      `PM2 lists it ${
        hasCron ? 'no more, as its cron_restart would have started it again' : 'as stopped'
      }; so that it stays so after a boot: pm2 save`
    ]
  }
}

/** `list`: of PM2 */
function appsIn (list: unknown[]): Pm2App[] {
  const groups = groupsOf(list)
  const inFile = namesOf(groups.map(([{ name, pm_exec_path: script }]) => ({ name, script })), undefined)
  return groups.map((group, index) => ({ name: String(group[0].name), inFile: inFile[index],
    isCluster: group[0].exec_mode === 'cluster_mode', isJob: isJob(group[0]), hasCron: hasCron(group[0]),
    ids: group.map(({ pm_id: id }) => Number(id)),
    running: group.map(({ status, pm_pid: pid, pm_id: id }) => ({ pid: status === 'online' ? Number(pid) : 0,
      id: Number(id) })
    ).filter(({ pid }) => pid > 0) })
  )
}

/**
 * `names`: none: all that run
 * @throws {DeckError} usage, not-possible
 */
function wantedOf (apps: Pm2App[], names: string[]): Pm2App[] {
  const unknown = names.find((each) => !apps.some(({ name }) => name === each))
  if (unknown !== undefined)
    throw misuse('--pm2', `some of ${apps.map(({ name }) => name).join(', ') || 'none'}, the apps of PM2`,
      JSON.stringify(unknown))
  const wanted = apps.filter((app) => names.length === 0 ? isThere(app) : names.includes(app.name))
  if (wanted.length === 0) throw new DeckError('not-possible', '--pm2: expected apps of PM2 that run, received none')
  const idle = wanted.find((app) => !isThere(app))
  if (idle) throw misuse('--pm2', 'apps of PM2 that run', `${idle.name}, which is stopped: clusterdeck start starts it`)
  return wanted
}

/** Tells whether PM2 runs it, now or at its times */
function isThere ({ running, isJob }: Pm2App): boolean {
  return running.length > 0 || isJob
}

/**
 * Returns the process that listens there
 * @throws {DeckError} not-possible
 */
function holderAt (port: number): number {
  const pids = holdersOfPort(port)
  if (pids === null)
    throw new DeckError('not-possible',
      `--port: expected a port of TCP on which a program listens, received ${port}, where none does`)
  if (pids.length === 0)
    throw new DeckError('not-possible',
      `--port: who listens on ${port} is not told to this user: expected a program of the same user; call this by sudo for one of another user`)
  return firstOf(pids)
}

/** Why nothing can take its place. Returns null: something can. */
function whyNone (facts: ProcessFacts, { processes, port }: { processes: readonly number[], port: string | undefined }):
  | string
  | null
{
  const { pid } = facts
  const names = namesInPm2(facts)
  if (pm2DaemonAt(facts) !== null || names.length > 0)
    return `PM2 runs ${names.join(', ') || 'it'}, and would start it again: clusterdeck adopt --pm2 ${
      names.length === 1 ? names[0] : '<name>'
    }`
  if (pid === 1 || facts.words[0].endsWith('/systemd'))
    return `systemd itself listens${
      port === undefined ? '' : ` on ${port}`
    }, for a socket unit: run clusterdeck start in the service of that unit instead, and no connection is refused either (clusterdeck help systemd)`
  if (processes.some((each) => factsOf(each)?.env.CLUSTERDECK_SLOT !== undefined))
    return 'that is a deck already: clusterdeck adopt <its folder> moves it into the host'
  if (/^docker-proxy$/.test(path.basename(facts.file || facts.words[0])))
    return 'that port is of a container: what listens there is in it, and cannot be run here in its place'
  const reason = whyElsewhere(pid)
  if (reason !== null) return `process ${pid}: ${reason}`
  return facts.user === userId() && facts.cwd !== '' && Object.keys(facts.env).length > 0
    ? null
    : `process ${pid} is of another user (uid ${facts.user}): call this as that user, or by sudo`
}

/** A config file in its folder counts, as for `clusterdeck start` there; else its command line. */
async function orderOfProcess (facts: ProcessFacts,
  { workers, name, isGiven }: { workers: string, name?: string, isGiven: boolean }): Promise<AppOrder>
{
  const { cwd } = facts
  const env: Record<string, string | undefined> = { ...variablesOfProcess(facts),
    [SHELL_VARIABLE]: describeShell(facts.pid),
    [TYPED_VARIABLE]: path.basename(facts.file) === 'node' ? facts.file : undefined }
  const named = name === undefined ? {} : { name }
  if (await findConfigFile({ env, cwd, isApart: true }))
    return orderOfStart({ ...named, ...(isGiven && { workers }) }, { env, cwd })
  const look = (script: string, folder: string) => lookUpScript(script, folder, env.PATH)
  return orderOfStart({ ...flagsOfProcess(facts, look), workers, ...named }, { env, cwd })
}

function orderInFile (found: ConfigFile, app: string, { workers, name }: { workers?: string, name?: string },
  terminal: Terminal): AppOrder
{
  const { file } = found
  const apps = appsOf(found)
  const flags = { ...(workers !== undefined && { workers }), ...(name !== undefined && { name }) }
  if (apps.size === 0) return orderOfStart({ config: file, ...flags }, terminal)
  const known = apps.get(app)
  if (!known)
    throw new DeckError('invalid-config',
      `--pm2: expected ${app} among the apps of ${file}, received ${
        [...apps.keys()].join(', ')
      }: clusterdeck import --pm2 --output other.mjs shows what it would be`)
  const order = orderOfApp({ ...known, name: app, dataDir: '', dependsOn: [] }, file, terminal)
  return { ...order, ...(name !== undefined && { name }), flags: { ...order.flags, ...flags } }
}

function stopBySignal (identity: ProcessIdentity): Pick<Adoptable, 'stop' | 'stopText'> {
  return { stop: async () => signalProcess(identity, 'SIGTERM'), stopText: `kill -TERM ${identity.pid}` }
}

/** `root`: may stop what this user may not */
function stopByUnit (unit: ServiceUnit, root: LineToRoot | null): Pick<Adoptable, 'stop' | 'stopText'> {
  const stopText = stopWords(unit).join(' ')
  return { async stop () {
    const failed = root && !unit.isOfUser ? root.stop() : await stopUnit(unit)
    if (failed !== null) throw new DeckError('not-possible', `${stopText} failed: ${failed}`)
  }, stopText }
}
