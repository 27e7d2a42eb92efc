import type { OpenRequest } from './request-list.ts'
import type { CrashNote } from './crash-note.ts'
import type { SessionBy } from './session-names.ts'

/**
 * What master and worker say to each other. This file imports nothing: both sides read it.
 *
 * The messages travel as Node's internal messages (a `cmd` that begins with `NODE_` is emitted as 'internalMessage', as
 * node:cluster's own are), so an app's `process.on('message')` never meets them and listening for them
 * does not keep a process alive. A raw handle may ride along with `socket`.
 */

/** Which socket a server asks for: the fields of node:cluster's own query, see lib/internal/cluster/child.js. */
export type SocketQuery = {
  /** of a Unix socket its absolute path */
  address: string | null,
  /** -1: a Unix socket */
  port: number | null,
  /** `udp4` or `udp6`: UDP */
  addressType: number | string,
  fd?: number,
  flags?: number,
  /** tells servers of one worker on the same address apart, as with `port: 0` twice */
  index: number,
  /** the permissions of a Unix socket */
  mode?: number,
  /** its path as the program has given it to bind(2), where that is not the address */
  asked?: string,
  /** what a program has set on its socket, and counts for bind(2) or before listen(2) */
  before?: BindOptions
}
/**
 * `device`: SO_BINDTODEVICE; `isFree`: IP_FREEBIND; `isTransparent`: IP_TRANSPARENT; the others: of SO_RCVBUF and
 * SO_SNDBUF, as they were set
 */
export type BindOptions = { device?: string, isFree?: boolean, isTransparent?: boolean, receiveBytes?: number,
  sendBytes?: number }

/**
 * `hello`: the worker can hear now; what was sent to it before would be lost.
 * `isOnlyIfHeld`: the socket is wanted if workers serve there already, and nothing is bound.
 * `bind-failed`: the server has no listener for 'error', so the bind error would end the worker. It waits for another
 * answer.
 * `listening`, `closed`: `address` is a URL; `isFixed`: the app has chosen it.
 * `active`: what keeps a process running that does not listen: names of `process.getActiveResourcesInfo()`, and
 * `Thread`;
 * `isIdle`: it has only waited for a while.
 * `thread-port-taken`: what Node said to a thread whose address is in use.
 * `probed`: why the probe does not find the worker ready yet; `probe` of `ready`: what it found in the end.
 * `spread`: whether it takes turns with the others to accept; `draining`: it accepts nothing any more.
 * `problem`: what it cannot do, to be told in the history.
 * `socket-note`: why a program does not share a socket, or not all of it. `status-text`: what it says of itself;
 * `stopping`: it has begun to end by itself. Both by sd_notify(3).
 * `silent`: a program that said regularly that it lives has stopped saying so; `answered`: it says so again.
 * `inspected`: a debugger can be attached, and may stop it at any time.
 * `leaving`: the app asked for the end of this worker, which serves until it is replaced; or the app closed its servers
 * and ends now.
 * `drained`: nothing is open any more; `heapBytes`: of the heap that it has been asked to keep, 0: none.
 * `heap-kept`: its heap is in the file, or `error` says why not; `requests`: how many it has begun in its life;
 * `rssBytes`: before it was written; `ms`: how long that took.
 * `requests`: the oldest of those in flight, and how many there are of them.
 * `files`: absolute paths of the code that it has loaded since the last such message.
 * `crashing`: an uncaught exception is about to end it; it accepts nothing any more.
 * `slot-read`: the app on standby has asked for its slot, in the variable `name`, while it loaded.
 * `crash-note`: what it dies of, where it could not leave a file.
 * `holds`: what a draining worker still has: as its drain begins, when that changes, and every 2 s as a sign of life.
 * `let-go-done`: how many connections it has let go.
 * `unfinished`: as it ends: what did not come to an end by itself.
 * `app-metrics`: what the app counts by prom-client, as far as the master does not know it yet; `id`: of the question,
 * null: it tells by itself;
 * `gone`: names of metrics that there are no longer; `leftOut`: series that were too many.
 * `app-metrics-wanted`: the app asks for those of all workers.
 */
export type ToMaster =
  | { type: 'hello' }
  | { type: 'socket', seq: number, query: SocketQuery, data?: unknown, isOnlyIfHeld?: boolean }
  | { type: 'release-socket', key: string }
  | { type: 'bind-failed', seq: number, errno: number, query: SocketQuery }
  | { type: 'listening', address: string, isFixed: boolean }
  | { type: 'closed', address: string }
  | { type: 'active', resources: string[], isIdle: boolean }
  | { type: 'thread-port-taken', message: string }
  | { type: 'probed', text: string }
  | { type: 'ready', probe?: string, warmupFailed?: string | null }
  | { type: 'spread', isEven: boolean }
  | { type: 'problem', message: string }
  | { type: 'draining' }
  | { type: 'drained', heapBytes: number }
  | { type: 'status-text', text: string }
  | { type: 'socket-note', text: string }
  | { type: 'stopping' }
  | { type: 'silent', text: string }
  | { type: 'answered' }
  | { type: 'inspected', isInspected: boolean }
  | { type: 'max-requests' }
  | { type: 'leaving' }
  | { type: 'diagnosed', id: number, error: string | null }
  | { type: 'heap-kept', requests: number, rssBytes: number, ms: number, error: string | null }
  | { type: 'requests', id: number, requests: OpenRequest[], total: number }
  | { type: 'files', files: string[] }
  | { type: 'crashing', errorName: string, errorMessage: string }
  | { type: 'slot-read', name: string, place: string | null }
  | { type: 'crash-note', note: CrashNote }
  | { type: 'holds' } & Holds
  | { type: 'let-go-done', connections: number }
  | { type: 'unfinished' } & Unfinished
  | { type: 'app-metrics', id: number | null, metrics: AppMetric[], gone: string[], leftOut: number }
  | { type: 'app-metrics-wanted', id: number }
  | { type: 'vitals' }
    & VitalsReport

/**
 * What a draining worker still has. `requests`: without the transfers, whose bytes move; `connections`: other
 * long-lived ones; `sessions`: whose requests go on to reach it.
 */
export type Holds = {
  /** that are not answered yet, without those below */
  requests: number,
  /** requests whose bytes move, up or down */
  transfers: number,
  webSockets: number,
  eventStreams: number,
  /** other long-lived ones: of a server that is not HTTP, and tunnels */
  connections: number,
  /** that are in its memory, and whose connections go on to come to it */
  sessions: number
}

/** What a worker that drained has not seen through. */
export type Unfinished = {
  /** that ended without their answer */
  requests: number,
  /** that ended in the middle of something, those of the requests among them */
  connections: number,
  /** of these requests: whose bytes had stopped moving */
  stalled?: number,
  /** long-lived ones that were ended in their own way */
  closed?: Pick<Holds, 'webSockets' | 'eventStreams' | 'connections'>
}

/** How long a draining worker keeps what it has. Times count from the begin of the drain. */
export type DrainLimits = {
  /** for HTTP connections that are idle */
  idleGraceMs: number,
  /** for requests */
  deadlineMs: number,
  /** a request whose bytes have moved within this time is a transfer, and is not cut at `deadlineMs` */
  stalledMs: number,
  /** for long-lived connections and transfers; 0: they end from the beginning, within `deadlineMs` */
  longLivedMs: number,
  /** long-lived connections are not ended at once, but over this time */
  spreadMs: number,
  /** nobody serves their clients after this worker */
  isLast: boolean
}

/**
 * The vital signs of a worker since its last report, `intervalMs` ago. A program that is no Node program is measured
 * from outside: of it there is only what the system knows.
 */
export type VitalsReport = {
  intervalMs: number,
  rssBytes: number,
  heapUsedBytes?: number,
  heapTotalBytes?: number,
  externalBytes?: number,
  /** of one CPU */
  cpuPercent: number,
  /** 0…1 */
  eventLoopUtilization?: number,
  /** how late timers were */
  loopDelayP50Ms?: number,
  loopDelayP99Ms?: number,
  loopDelayMaxMs?: number,
  /** requests that have ended, by STATUS_CLASSES */
  statuses?: number[],
  /** of those that were answered, as `[bucket, count, bucket, count …]`, see histogram.ts */
  latency?: number[],
  latencySumMs?: number,
  /** requests that are not answered yet */
  inFlight?: number,
  openConnections?: number,
  /** it and all that it has started; these three of programs alone */
  processes?: number,
  threads?: number,
  /** that are open */
  descriptors?: number,
  /** those that have answered, at most MAX_ROUTES and the others */
  routes?: RouteReport[]
}

/**
 * What has been answered of one route.
 * `route`: method and template, as `GET /users/:id`; `errors`: answers with 5xx; `slowest`: none of older workers
 */
export type RouteReport = { route: string, errors: number, latency: number[], slowest?: SlowRequest }
/** `path`: without the query; `at`: when it was answered, ms since the epoch */
export type SlowRequest = { method: string, path: string, status: number, ms: number, at: number }

/**
 * A metric of the app. A row is a series: `[labels, value]`, or of a histogram and a summary `[labels, sum, count,
 * buckets]`, whose counts are cumulative.
 */
export type AppMetric = {
  name: string,
  help: string,
  type: string,
  /** how those of several workers become one, such as `sum` */
  aggregator: string,
  rows:
    ([labels: Record<string, unknown>, value: number] | [labels: Record<string, unknown>, sum: number, count: number,
      buckets: [le: number, count: number][]])[]
}

/** A worker has no more, nor an app; a series is a line, as Prometheus reads it. */
export const MAX_APP_SERIES = 10_000

/** How an HTTP request can end; `aborted`: its connection closed before its answer. */
export const STATUS_CLASSES = Object.freeze(['2xx', '3xx', '4xx', '5xx', 'other', 'aborted'] as const)
const OTHER = STATUS_CLASSES.indexOf('other')
export const ABORTED = STATUS_CLASSES.indexOf('aborted')

/** So many routes of a release are counted each by itself; what comes after is counted as OTHER_ROUTES. */
export const MAX_ROUTES = 200
export const OTHER_ROUTES = '(other)'
/** A longer method or path of a SlowRequest is cut. */
export const MAX_TARGET_CHARS = 200
/** In place of a path for what was answered with 404 and has no route: scanners ask for anything. */
export const NOT_FOUND_ROUTE = '(not found)'

/** `code`: an HTTP status. Returns the index of its class. */
export function statusClass (code: number): number {
  return code >= 200 && code < 600 ? Math.floor(code / 100) - 2 : OTHER
}

/** The answer to a worker that asked for a socket. */
export type SocketReply = {
  type: 'socket',
  /** of the question */
  seq: number,
  key: string,
  /** below 0 */
  errno?: number,
  /** the bind error must not end the worker: the master is about to report it and end everything */
  awaitMaster?: boolean,
  /** another worker has that address, or one that covers it; without that worker it would be free */
  isPlaceholder?: boolean,
  /** no other slot has that socket */
  isOwn?: boolean,
  /** whether calls on it wait is not for the worker to say: others have it, too */
  keepsFlags?: boolean,
  /** the descriptor is a number of the worker's process; the service manager has passed none such */
  isWorkersOwn?: boolean,
  /** no worker has served at that address */
  isNotHeld?: boolean,
  data?: unknown
}

/**
 * `accept-also`: the server that has `key` gets the connections of another socket too: of slot `name`, or of a port of
 * its own.
 * `serve`: it listens, so it may accept the connections that the probe has held back.
 * `promote`: it was on standby and has that slot now; what it has asked for is answered next.
 * `end-connections`: the time for long-lived connections and transfers of a draining worker is over now.
 * `probe`: the app has said that it is ready, so it can be asked.
 * `profile`: a slice of continuous profiling; it is there once it has its name.
 * `keep-heap`: it says how large its heap is once it has drained, as that may be wanted in this file; `write-heap`: it
 * is.
 * `limits`: these limits of BootSettings have changed.
 * `outlive`: the master of an upgrade has taken over; until then its workers end with it.
 * `serve-alone`: the channel ends next, as the part of the master that is for this app has failed: it serves on as
 * after the death of a master.
 * `count-as-ready`: it does not listen, and is of use without that; or its app has told the master that it is ready.
 * `accept-again`: a connection may wait that another worker was woken for, and will not take; `others`: how many of
 * these wait in turn.
 * `let-go`: it gets so many more requests than the others have on average; it ends so many connections at most.
 * `app-metrics-text`: those of all workers, as the app has asked.
 * `terminate`: the SIGTERM that comes is the master's.
 */
export type ToWorker =
  | SocketReply
  | { type: 'accept-also', key: string, name: number | 'port' }
  | { type: 'accept-no-more', key: string, name: number | 'port' }
  | { type: 'serve' }
  | { type: 'promote', slot: number }
  | { type: 'drain' } & DrainLimits
  | { type: 'end-connections', spreadMs: number, isLast: boolean }
  | { type: 'probe' }
  | { type: 'limits', graceMs: number, maxRequests: number }
  | { type: 'close-inspector' }
  | { type: 'diagnose', id: number, kind: 'cpu-profile' | 'heap-snapshot' | 'heap-statistics' | 'report', file: string,
    durationMs: number }
  | { type: 'profile', file: string, durationMs: number }
  | { type: 'keep-heap', file: string }
  | { type: 'write-heap' }
  | { type: 'list-requests', id: number }
  | { type: 'outlive' }
  | { type: 'serve-alone' }
  | { type: 'count-as-ready' }
  | { type: 'accept-again', others: number }
  | { type: 'let-go', requestsPerSecond: number, connections: number }
  | { type: 'read-app-metrics', id: number }
  | { type: 'app-metrics-text', id: number, text: string }
  | { type: 'terminate' }

/** What the preload needs to know, as JSON in the environment variable BOOT_VARIABLE. */
export type BootSettings = {
  /** the file of the worker's side */
  code: string,
  /** the folder in which Node keeps what it has compiled; null: it does not */
  compileCache: string | null,
  /** NODE_OPTIONS as the app is to see it; null: it is not set */
  nodeOptions: string | null,
  /** modules of the user are loaded by `--import` before the app */
  hasImports: boolean,
  /** of the variables that follow the slot, without those that the user has set or left out */
  slotVariableNames: string[],
  /** its id; ids go on counting where a dead master has left its workers behind */
  worker: number,
  /** it has no slot yet */
  standsBy: boolean,
  dispatch: 'shared' | 'sticky',
  /** `notify`: of programs of other languages alone */
  readySignal: 'auto' | 'listening' | 'message' | 'notify' | 'online',
  crashFile: string,
  crash: { graceMs: number },
  orphan: OrphanSettings,
  /** after so many it is recycled; 0: never */
  maxRequests: number,
  /** how soon it tells of files that it loads late */
  files: 'off' | 'rarely' | 'often',
  probe: ProbeSettings | null,
  /** null: they do not matter */
  sessions: SessionSettings | null,
  /** requests are counted by route too */
  countsRoutes: boolean,
  /** what the app counts by prom-client is told to the master */
  tellsMetrics: boolean,
  /** some of its variables are on no disk, so what Node writes at its end is to leave out all */
  hasSecrets: boolean,
  /** the entry as the user has named it; null: it is no link */
  calledAs: string | null
}

/** How sessions stay with the worker that has them in memory. */
export type SessionSettings = {
  /** of this deck, where workers find each other */
  folder: string,
  by: SessionBy,
  /** a session is over after so long without a request */
  idleMs: number
}

/** How a worker asks its app before it accepts connections. */
export type ProbeSettings = {
  /** null: the app is only warmed up */
  path: string | null,
  /** such as `200` and `200-399` */
  status: string[],
  intervalMs: number,
  /** of each try */
  timeoutMs: number,
  warmup: string[],
  warmupRounds: number
}

/** What a worker does whose master has died. The limits are for a drain that nobody has ordered. */
export type OrphanSettings = Omit<DrainLimits, 'isLast'> & OwnOrphanSettings
type OwnOrphanSettings = {
  outlives: boolean,
  orderFile: string,
  /** the process that would start the next master */
  keeper: number | null,
  /** how long it waits for the next master where nobody would start one */
  afterMs: number,
  termGraceMs: number,
  message: ShutdownMessage
}
/** how an app is told to end; `text`: as PM2 does */
export type ShutdownMessage = 'object' | 'text'
/**
 * What the next master says to such a worker by the file `orderFile`, as there is no channel between them. The order to
 * drain may change: one whose `longLivedMs` is 0 says `end-connections`.
 */
export type OrphanOrder = { pid: number, claimedBy: number, drain: DrainLimits | null }

/** Of DrainLimits, in the order in which orderText writes them. */
const LIMITS = ['idleGraceMs', 'deadlineMs', 'stalledMs', 'longLivedMs', 'spreadMs'] as const
/** The shortest that both sides of the text can make and read. */
const RADIX = 36

/**
 * Writes an order as the target of a symbolic link. A full disk has room for one of up to 59 bytes: "fast symlinks" of
 * ext4.
 */
export function orderText ({ pid, claimedBy, drain }: OrphanOrder) {
  const numbers = [pid, claimedBy, ...(drain ? [...LIMITS.map((name) => drain[name]), Number(drain.isLast)] : [])]
  return numbers.map((each) => each.toString(RADIX)).join(' ')
}

export function parseOrderText (text: string): OrphanOrder {
  const [pid, claimedBy, ...numbers] = text.split(' ').map((each) => parseInt(each, RADIX))
  if (numbers.length === 0) return { pid, claimedBy, drain: null }
  const [idleGraceMs, deadlineMs, stalledMs, longLivedMs, spreadMs, isLast] = numbers
  return { pid, claimedBy, drain: { idleGraceMs, deadlineMs, stalledMs, longLivedMs, spreadMs, isLast: isLast === 1 } }
}

/** What an orphan that drains still has: it writes this as JSON, as often as it would say `holds`. */
export type OrphanHolds =
  & { pid: number }
  & Holds

/** @returns where an orphan writes what it holds */
export function holdsFileOf (orderFile: string): string {
  return `${orderFile}.holds`
}

/** Only the worker has it: boot.ts removes it, so that no child of the app takes itself for a worker. */
export const BOOT_VARIABLE = 'CLUSTERDECK_BOOT'
/**
 * The master closes its end of this pipe once it has set the limits of a worker, which it can do only while the worker
 * runs. Until then the worker does not load the app.
 */
export const START_DESCRIPTOR = 4

export const SLOT_VARIABLE = 'CLUSTERDECK_SLOT'

/**
 * Makes the variables that tell an app its slot: ours counts from 1, every other one from 0, as that of PM2 does.
 * `slot`: null: none yet; `names`: of the variables.
 */
export function slotVariables (slot: number | null, names: string[]): Record<string, string | undefined> {
  return Object.fromEntries(
    names.map((name) => [name, slot === null ? undefined : String(name === SLOT_VARIABLE ? slot : slot - 1)])
  )
}

export const COMMAND = 'NODE_CLUSTERDECK'

/** Makes the message that an app gets before its SIGTERM. */
export function shutdownMessage (kind: ShutdownMessage) {
  return kind === 'text' ? 'shutdown' : { type: 'shutdown', from: 'master' }
}

export type Envelope<Message extends ToMaster | ToWorker> = { cmd: string, body: Message }

export function wrapMessage<Message extends ToMaster | ToWorker> (message: Message): Envelope<Message> {
  return { cmd: COMMAND, body: message }
}

/** `message`: any internal message: node:cluster has its own. Returns null: it is none of clusterdeck's. */
export function unwrapMessage<Message extends ToMaster | ToWorker> (
  message: Envelope<Message> | null | undefined
): Message | null {
  return message?.cmd === COMMAND ? message.body : null
}

/** `query`: the name under which the master keeps a socket */
export function socketKey ({ address, port, addressType, fd, index, before }: SocketQuery) {
  return `${address}:${port}:${addressType}:${fd}:${index}${before?.device === undefined ? '' : `:${before.device}`}`
}

/** @returns of the query that has it */
export function placeOfKey (key: string): Pick<SocketQuery, 'address' | 'port' | 'addressType' | 'before'> {
  const [, address, port, addressType, device] = /^(.*):(-?\d+):([^:]*):[^:]*:\d+(?::([^:]+))?$/s.exec(key) ??
    [null, 'null', '-1', '-1']
  return { address: address === 'null' ? null : address, port: Number(port), addressType,
    ...(device && { before: { device } }) }
}

export function isUdp<Query extends Pick<SocketQuery, 'addressType'>> (
  query: Query
): query is Query & { addressType: 'udp4' | 'udp6' } {
  return String(query.addressType).startsWith('udp')
}
