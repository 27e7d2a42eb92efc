/**
 * What master and worker say to each other. This file imports nothing: both sides read it.
 *
 * The messages travel as Node's internal messages (a `cmd` that begins with `NODE_` is emitted as 'internalMessage', as
 * node:cluster's own are), so an app's `process.on('message')` never meets them and listening for them
 * does not keep a process alive. A raw handle may ride along with `socket`.
 */

/**
 * Which socket a server asks for: the fields of node:cluster's own query, see lib/internal/cluster/child.js.
 * `port` is -1 for a Unix socket, whose absolute path is then in `address`; `addressType` is `udp4` or `udp6` for UDP. `index` tells a worker's second server on
 * the same address, as `port: 0` twice, from its first. `mode`: the permissions of a Unix socket.
 * @typedef {{ address: string | null, port: number | null, addressType: number | string, fd: number | undefined, flags: number | undefined, index: number, mode?: number }} SocketQuery
 */

/**
 * @typedef {{ type: 'hello' }
 *   | { type: 'socket', seq: number, query: SocketQuery, data?: unknown }
 *   | { type: 'release-socket', key: string }
 *   | { type: 'bind-failed', seq: number, errno: number, query: SocketQuery }
 *   | { type: 'listening', address: string, isFixed: boolean }
 *   | { type: 'closed', address: string }
 *   | { type: 'active', resources: string[], isIdle: boolean }
 *   | { type: 'thread-port-taken', message: string }
 *   | { type: 'probed', text: string }
 *   | { type: 'ready', probe?: string, warmupFailed?: string | null }
 *   | { type: 'spread', isEven: boolean }
 *   | { type: 'draining' }
 *   | { type: 'drained' }
 *   | { type: 'inspected', isInspected: boolean }
 *   | { type: 'max-requests' }
 *   | { type: 'leaving' }
 *   | { type: 'diagnosed', id: number, error: string | null }
 *   | { type: 'requests', id: number, requests: import('./request-list.js').OpenRequest[], total: number }
 *   | { type: 'files', files: string[] }
 *   | { type: 'crashing', errorName: string, errorMessage: string }
 *   | { type: 'slot-read', name: string, place: string | null }
 *   | { type: 'crash-note', note: import('./crash-note.js').CrashNote }
 *   | { type: 'unfinished', requests: number, connections: number }
 *   | { type: 'vitals' } & VitalsReport} ToMaster
 *
 * `probed`: why the probe does not find it ready yet; `probe`: what it found in the end.
 * `hello`: the worker can hear from now on; what was sent to it before would be lost.
 * `bind-failed`: nobody in the worker listens for the server's 'error', so the bind error would end it; it waits for another answer.
 * `closed`: where it had listened; `active`: what keeps a process running that does not listen, as `process.getActiveResourcesInfo()` names it, `Thread` for a thread, and whether it has only waited for a while.
 * `thread-port-taken`: what Node said to a thread whose address is in use.
 * `spread`: whether it waits for its turn, and accepts only then; `draining`: it accepts nothing any more.
 * `inspected`: a debugger can be attached, and may stop it at any time.
 * `leaving`: the app has said that this worker should end, and it serves until it is replaced; or the app has closed its servers, and ends now.
 * `requests`: the oldest of those in flight, and how many there are of them.
 * `files`: absolute paths of what it has loaded as code since it last said so.
 * `crashing`: an uncaught exception is about to end it; it accepts nothing any more.
 * `slot-read`: the app on standby has asked for its slot, in the variable `name`, while it loaded.
 * `crash-note`: what it dies of, where it could not leave a file.
 * `unfinished`: it ends before it has drained, and these end with it.
 */

/**
 * How a worker felt since its last report, `intervalMs` ago.
 * @typedef {object} VitalsReport
 * @property {number} intervalMs
 * @property {number} rssBytes
 * @property {number} heapUsedBytes
 * @property {number} heapTotalBytes
 * @property {number} externalBytes
 * @property {number} cpuPercent  of one CPU
 * @property {number} eventLoopUtilization  0…1
 * @property {number} loopDelayP50Ms  how late timers were
 * @property {number} loopDelayP99Ms
 * @property {number} loopDelayMaxMs
 * @property {number[]} statuses  requests that have ended, by STATUS_CLASSES
 * @property {number[]} latency  of those that were answered, as `[bucket, count, bucket, count …]`, see histogram.js
 * @property {number} latencySumMs
 * @property {number} inFlight  requests that are not answered yet
 * @property {number} openConnections
 */

/** The kinds of ends that an HTTP request has; `aborted`: its connection was gone before its answer. */
export const STATUS_CLASSES = Object.freeze(['2xx', '3xx', '4xx', '5xx', 'other', 'aborted'])
const OTHER = STATUS_CLASSES.indexOf('other')
export const ABORTED = STATUS_CLASSES.indexOf('aborted')

/** @param {number} code an HTTP status @returns {number} the index of its class */
export function statusClass (code) {
  return code >= 200 && code < 600 ? Math.floor(code / 100) - 2 : OTHER
}

/**
 * @typedef {{ type: 'socket', seq: number, key: string, errno?: number, awaitMaster?: boolean, isPlaceholder?: boolean, isOwn?: boolean, isWorkersOwn?: boolean, data?: unknown }
 *   | { type: 'accept-also', key: string, name: number | 'port' }
 *   | { type: 'accept-no-more', key: string, name: number | 'port' }
 *   | { type: 'serve' }
 *   | { type: 'promote', slot: number }
 *   | { type: 'drain', idleGraceMs: number }
 *   | { type: 'probe' }
 *   | { type: 'limits', graceMs: number, maxRequests: number }
 *   | { type: 'close-inspector' }
 *   | { type: 'diagnose', id: number, kind: 'cpu-profile' | 'heap-snapshot' | 'heap-statistics' | 'report', file: string, durationMs: number }
 *   | { type: 'list-requests', id: number }
 *   | { type: 'outlive' }
 *   | { type: 'count-as-ready' }
 *   | { type: 'accept-again', others: number }
 *   | { type: 'terminate' }} ToWorker
 *
 * `promote`: it was on standby, and has that slot from now on; what it has asked for is answered next.
 * `probe`: the app has said that it is ready, so it can be asked.
 * `limits`: those of the settings below are others now.
 * `terminate`: the SIGTERM that comes is the master's.
 * `accept-again`: a connection may wait that another worker was woken for, and will not take; `others`: how many of these wait in turn.
 * `count-as-ready`: it does not listen, and is of use without that.
 * `outlive`: the master of an upgrade has taken over; until then its workers end with it.
 * `isOwn`: no other slot has that socket; `serve`: it listens, so connections may be accepted that the probe has held back.
 * `accept-also`: connections of another socket are for the server that has `key` too: those of slot `name`, or those of a port of its own.
 * `isPlaceholder`: another worker has that address, or one that covers it; without that one it would be free.
 * `isWorkersOwn`: the descriptor that it has named is a number of the worker's process, and none that the service manager has passed.
 * `awaitMaster`: do not let this bind error end the worker, the master is about to report it and end everything.
 */

/**
 * What the preload needs to know, as JSON in the environment variable BOOT_VARIABLE. `worker`: its id, which goes on
 * counting where a dead master has left its workers behind. `standsBy`: it has no slot yet. `maxRequests`: after which it is to be recycled, 0: never.
 * `files`: how soon it tells of files that it loads late. `calledAs`: the entry as the user has named it, where that is a link; null: it is none.
 * `slotVariableNames`: of the variables that follow the slot, without those that the user has set or left out.
 * `nodeOptions`: NODE_OPTIONS as the app is to see it, null: it is not set; `hasImports`: whether modules of the user's are loaded by `--import` before the app.
 * @typedef {{ nodeOptions: string | null, hasImports: boolean, slotVariableNames: string[], worker: number, standsBy: boolean, dispatch: 'shared' | 'sticky' | 'round-robin', readySignal: 'auto' | 'listening' | 'message' | 'online', crashFile: string, crash: { graceMs: number }, orphan: OrphanSettings, maxRequests: number, files: 'off' | 'rarely' | 'often', probe: ProbeSettings | null, calledAs: string | null }} BootSettings
 *
 * How a worker asks its app before it accepts connections; `path`: null: it is warmed up alone; `status`: such as `200` and `200-399`, `timeoutMs`: of each try.
 * @typedef {{ path: string | null, status: string[], intervalMs: number, timeoutMs: number, warmup: string[], warmupRounds: number }} ProbeSettings
 *
 * What a worker does whose master has died; `afterMs`: how long it waits for the next one, where nobody is left who would start one; `keeper`: who would.
 * @typedef {{ outlives: boolean, orderFile: string, keeper: number | null, afterMs: number, idleGraceMs: number, deadlineMs: number, termGraceMs: number, message: ShutdownMessage }} OrphanSettings
 *
 * How an app is told that its time has come: as an object, or as PM2 does.
 * @typedef {'object' | 'text'} ShutdownMessage
 *
 * What the next master says to such a worker by the file `orderFile`, as there is no channel between them.
 * @typedef {{ pid: number, claimedBy: number, drain: { idleGraceMs: number, deadlineMs: number } | null }} OrphanOrder
 */

/**
 * The same as the target of a symbolic link, for which a full disk has room: up to 59 bytes, see "fast symlinks" of ext4.
 * @param {OrphanOrder} order
 */
export function orderText ({ pid, claimedBy, drain }) {
  return [pid, claimedBy, ...(drain ? [drain.idleGraceMs, drain.deadlineMs] : [])].join(' ')
}

/** @param {string} text @returns {OrphanOrder} */
export function parseOrderText (text) {
  const [pid, claimedBy, idleGraceMs, deadlineMs] = text.split(' ').map(Number)
  return { pid, claimedBy, drain: deadlineMs === undefined ? null : { idleGraceMs, deadlineMs } }
}

/** Set for the worker alone: boot.js removes it, so that no child of the app takes itself for a worker. */
export const BOOT_VARIABLE = 'CLUSTERDECK_BOOT'

export const SLOT_VARIABLE = 'CLUSTERDECK_SLOT'

/**
 * What tells an app its slot: our variable counts from 1, every other one from 0, as that of PM2 does.
 * @param {number | null} slot null: none yet @param {string[]} names  of the variables
 * @returns {Record<string, string | undefined>}
 */
export function slotVariables (slot, names) {
  return Object.fromEntries(names.map((name) => [name, slot === null ? undefined : String(name === SLOT_VARIABLE ? slot : slot - 1)]))
}

export const COMMAND = 'NODE_CLUSTERDECK'

/** What an app hears before its SIGTERM. @param {ShutdownMessage} kind */
export function shutdownMessage (kind) {
  return kind === 'text' ? 'shutdown' : { type: 'shutdown', from: 'master' }
}

/**
 * @template {ToMaster | ToWorker} Message
 * @typedef {{ cmd: string, body: Message }} Envelope
 */

/** @template {ToMaster | ToWorker} Message @param {Message} message @returns {Envelope<Message>} */
export function wrapMessage (message) {
  return { cmd: COMMAND, body: message }
}

/**
 * @template {ToMaster | ToWorker} Message
 * @param {Envelope<Message> | null | undefined} message  any internal message: node:cluster has its own
 * @returns {Message | null} null: it is none of clusterdeck's
 */
export function unwrapMessage (message) {
  return message?.cmd === COMMAND ? message.body : null
}

/** @param {SocketQuery} query the name under which the master keeps a socket */
export function socketKey ({ address, port, addressType, fd, index }) {
  return `${address}:${port}:${addressType}:${fd}:${index}`
}

/** @param {string} key @returns {Pick<SocketQuery, 'address' | 'port' | 'addressType'>} of the query that has it */
export function placeOfKey (key) {
  const [, address, port, addressType] = /^(.*):(-?\d+):([^:]*):[^:]*:\d+$/s.exec(key) ?? [null, 'null', '-1', '-1']
  return { address: address === 'null' ? null : address, port: Number(port), addressType }
}
