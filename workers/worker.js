import cluster from 'node:cluster'
import { setImmediate } from 'node:timers'
import { holdsServer, tellActivity } from './activity.js'
import { keepAppChannel } from './app-channel.js'
import { tellAppMetrics } from './app-metrics.js'
import { createBusyConnections } from './busy-connections.js'
import { tellState } from './heartbeat.js'
import { replaceBeforeLeaving } from './asked-to-leave.js'
import { openChannel } from './channel.js'
import { recordCrashes } from './crash.js'
import { answerDiagnostics } from './diagnostics.js'
import { createDrain } from './drain.js'
import { tellDraining } from './drain-notice.js'
import { createAcceptDeferral, createReceiveDeferral } from './defer-accept.js'
import { endWhenDone } from './end-when-done.js'
import { createEvenAccept } from './even-accept.js'
import { createFatalGrace } from './fatal-grace.js'
import { outliveFullDisk } from './full-disk.js'
import { isHttp, openOwnSockets, shareSockets, watchDatagramServers, watchServers, whenServing } from './listen.js'
import { createLastHeap } from './last-heap.js'
import { createLatePorts } from './late-ports.js'
import { tellLoadedFiles } from './loaded-files.js'
import { outliveMaster } from './orphan.js'
import { keepOwnListeners } from './own-listeners.js'
import { arePreloading } from './preloads.js'
import { createProbeClient } from './probe-client.js'
import { createReadiness } from './readiness.js'
import { answerRequestLists } from './request-list.js'
import { watchRequests } from './requests.js'
import { createRoutes } from './routes.js'
import { createSessions, NO_SESSIONS } from './sessions.js'
import { standBy } from './standby.js'
import { createTermination } from './termination.js'
import { watchThreads } from './threads.js'
import { sendVitals } from './vitals.js'

const WAITS_FOR_LISTEN = ['auto', 'listening']

/**
 * Starts all that runs inside a worker beside the app.
 * @param {import('./protocol.js').BootSettings} settings
 */
export function startWorker (settings) {
  const { worker, standsBy, slotVariableNames, dispatch, readySignal, crashFile, crash, maxRequests, files, probe, calledAs } = settings
  const channel = openChannel()
  const standby = standsBy ? standBy(channel, slotVariableNames) : null
  const routes = settings.countsRoutes ? createRoutes() : null
  const requests = watchRequests({ routes })
  const sessions = settings.sessions ? createSessions(settings.sessions, { worker, requests, onProblem: (message) => channel.send({ type: 'problem', message }) }) : NO_SESSIONS
  const latePorts = createLatePorts({ isLate: () => ((isReady || countsAsReady) && (hasListened || hasBound)) || drain.isDraining() || !channel.isOpen(), connections: () => drain.connections() })
  const drain = createDrain({
    requests,
    sessions,
    latePorts,
    onStart (limits) {
      naturalEnd?.hold()
      termination.prepare()
      tellDraining(limits, (message) => channel.send({ type: 'problem', message }))
    },
    onHolds: (holds) => orphan.note(holds) || channel.send({ type: 'holds', ...holds }),
    onOverdue: () => orphan.endAlone(),
    onDrained: () => fatalGrace.isDying() || orphan.endAlone() || sayDrained()
  })
  const busyConnections = createBusyConnections({ requests, isDraining: drain.isDraining, onEnd: (connections) => channel.send({ type: 'let-go-done', connections }) })
  const hasSockets = dispatch !== 'round-robin'
  let { graceMs } = crash
  const fatalGrace = createFatalGrace({ graceMs: () => graceMs, requests, drain, channel })
  const loadedFiles = tellLoadedFiles(channel, files)
  const lastHeap = createLastHeap(channel, { requests: requests.begun, onDone: sayDrained })
  const appMetrics = settings.tellsMetrics ? tellAppMetrics(channel) : null
  let isReady = false
  let hasListened = false
  let hasBound = false
  /** A server of HTTP may follow, as its code is loaded. */
  let mayServeDatagrams = false
  let isServing = false
  let countsAsReady = false
  const deferral = probe && createAcceptDeferral()
  const receiveDeferral = createReceiveDeferral({ hold: () => naturalEnd?.hold() ?? (() => {}) })
  const readiness = probe && createReadiness(probe, { createClient: createProbeClient, onSeen: (text) => channel.send({ type: 'probed', text }), onReady: acceptReady })
  const orphan = outliveMaster(settings.orphan, { drain, hasSockets, isOfUse })

  outliveFullDisk()
  if (cluster.worker) cluster.worker.id = worker
  if (calledAs) process.argv[1] = calledAs
  recordCrashes(crashFile, { channel, requests, fatalGrace })
  const termination = createTermination({ channel, drain, orphan })
  const onClosed = (/** @type {string} */ address) => channel.send({ type: 'closed', address })
  const servers = watchServers(latePorts, {
    onListen,
    onListening: announceServer,
    onClosed,
    onSettled: beReadyIfServing
  })
  const evenAccept = createEvenAccept({ onKnown: (isEven) => channel.send({ type: 'spread', isEven }) })
  watchDatagramServers(latePorts, { onBound: announceDatagrams, onClosed })
  if (hasSockets) shareSockets({ channel, drain, latePorts, deferral, receiveDeferral, evenAccept, sessions })
  else openOwnSockets(latePorts)
  // A server that has to answer before it is let in does not listen yet.
  const naturalEnd = readiness ? null : endWhenDone({ sharesSockets: hasSockets })
  if (standby && naturalEnd) standby.whenPromoted(naturalEnd.hold())
  channel.on('drain', (message) => {
    readiness?.stop()
    drain.start(message)
    channel.send({ type: 'draining' })
  })
  channel.on('end-connections', drain.endConnections)
  channel.on('probe', () => readiness?.begin())
  channel.on('outlive', orphan.outlive)
  channel.on('serve-alone', orphan.expectEnd)
  channel.on('count-as-ready', () => {
    countsAsReady = true
    receiveDeferral.end()
    activity.stop()
  })
  channel.on('accept-again', evenAccept.again)
  channel.on('let-go', busyConnections.letGo)
  channel.on('serve', () => isReady && deferral?.end())
  process.on('exit', (code) => {
    appMetrics?.end()
    if (drain.isDraining()) {
      const unfinished = drain.unfinished()
      if (unfinished) channel.send({ type: 'unfinished', ...unfinished })
    } else if (code === 0 && isReady && hasListened && ![...drain.servers()].some(({ listening }) => listening)) {
      // An app that closes its servers before it ends has meant to.
      channel.send({ type: 'leaving' })
    }
  })
  channel.send({ type: 'hello' })
  const vitals = sendVitals({ channel, requests, servers: drain.servers })
  tellState(channel)
  limitRequests(maxRequests)
  channel.on('limits', (limits) => {
    graceMs = limits.graceMs
    limitRequests(limits.maxRequests)
  })
  const activity = tellActivity(channel, watchThreads(channel), { servesDatagrams: () => mayServeDatagrams, onIdle: serve })
  replaceBeforeLeaving({
    ask () {
      naturalEnd?.hold()
      channel.send({ type: 'leaving' })
    },
    isServing: () => isReady && !drain.isDraining(),
    ...keepAppChannel({ isOfUse })
  })
  answerDiagnostics(channel)
  answerRequestLists(channel, requests)
  // The main module of a CommonJS app has run by the first turn after this.
  if (readySignal === 'online' && !readiness) setImmediate(beReady)
  if (readySignal !== 'message') readiness?.begin()
  keepOwnListeners()

  function isOfUse () {
    return !standby?.isWaiting() && (isReady || countsAsReady || (hasListened && !readiness))
  }

  function limitRequests (/** @type {number} */ count) {
    requests.whenBegun(count, () => channel.send({ type: 'max-requests' }))
  }

  /** @param {import('node:net').Server} server @returns {boolean} whether it is the app's, and not one of what is loaded before that */
  function onListen (server) {
    drain.watch(server)
    if (standby && dispatch === 'shared') evenAccept.prepare()
    if (arePreloading()) return false
    loadedFiles.begin()
    appMetrics?.begin()
    routes?.begin()
    standby?.listens()
    return true
  }

  function announceServer (/** @type {import('node:net').Server} */ server, /** @type {string} */ address, /** @type {boolean} */ isFixed) {
    hasListened = true
    activity.stop()
    channel.send({ type: 'listening', address, isFixed })
    if (readiness) return isReady || !isHttp(server) || readiness.listening(server, address)
    whenServing(server, serve)
  }

  /** What is bound to a port of UDP is a server, unless one of HTTP is still to come, which has announced something to its network before. */
  function announceDatagrams (/** @type {string} */ address, /** @type {boolean} */ isAlone) {
    if (arePreloading()) return
    hasBound = true
    channel.send({ type: 'listening', address, isFixed: isAlone })
    if (readiness) return
    if (holdsServer()) mayServeDatagrams = isAlone
    else setImmediate(serve)
  }

  function serve () {
    isServing = true
    beReadyIfServing()
  }

  // An app that listens on several addresses at once is to have all of them.
  function beReadyIfServing () {
    if (isServing && WAITS_FOR_LISTEN.includes(readySignal) && !readiness && !servers.isOpening()) beReady()
  }

  function sayDrained () {
    // The last report must count what was answered since the one before.
    vitals.send()
    channel.send({ type: 'drained', heapBytes: lastHeap.bytes() })
  }

  /** The probe has succeeded. @param {{ probe: string, warmupFailed: string | null }} report */
  function acceptReady (report) {
    // The master listens first where each slot has a socket of its own, so that it knows their order.
    if (dispatch !== 'sticky') deferral?.end()
    beReady(report)
  }

  function beReady (report = {}) {
    if (standby?.isWaiting()) return standby.whenPromoted(() => beReady(report))
    if (isReady) return
    isReady = true
    receiveDeferral.end()
    activity.stop()
    loadedFiles.begin()
    appMetrics?.begin()
    channel.send({ type: 'ready', ...report })
  }
}
