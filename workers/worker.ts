import cluster from 'node:cluster'
import { setImmediate } from 'node:timers'
import { holdsServer, tellActivity } from './activity.ts'
import { keepAppChannel } from './app-channel.ts'
import { tellAppMetrics } from './app-metrics.ts'
import { createBusyConnections } from './busy-connections.ts'
import { openChannel } from './channel.ts'
import { recordCrashes } from './crash-note.ts'
import { answerDiagnostics } from './diagnostics.ts'
import { createDrain } from './drain.ts'
import { tellDraining } from './drain-notice.ts'
import { createAcceptDeferral, createReceiveDeferral } from './defer-accept.ts'
import { createEvenAccept } from './even-accept.ts'
import { createFatalGrace } from './fatal-grace.ts'
import { outliveFullDisk } from './full-disk.ts'
import { tellInspection } from './inspector.ts'
import { isHttp, shareSockets, watchDatagramServers, watchServers, whenServing } from './listen.ts'
import { createLastHeap } from './last-heap.ts'
import { createLatePorts } from './late-ports.ts'
import { tellLoadedFiles } from './loaded-files.ts'
import { outliveMaster } from './orphan.ts'
import { endWhenDone, replaceBeforeLeaving } from './own-end.ts'
import { keepOwnListeners } from './own-listeners.ts'
import { arePreloading } from './preloads.ts'
import { createProbeClient } from './probe-client.ts'
import { readBeforeTimeout } from './read-before-timeout.ts'
import { createReadiness } from './readiness.ts'
import { answerRequestLists } from './request-list.ts'
import { watchRequests } from './requests.ts'
import { createRoutes } from './routes.ts'
import { createSessions, NO_SESSIONS } from './sessions.ts'
import { standBy } from './standby.ts'
import { createTermination } from './termination.ts'
import { sendVitals } from './vitals.ts'
import type { Server } from 'node:net'
import type { BootSettings } from './protocol.ts'

const WAITS_FOR_LISTEN = ['auto', 'listening']

/** Starts all that runs inside a worker beside the app. */
export function startWorker (settings: BootSettings) {
  const { worker, standsBy, slotVariableNames, dispatch, readySignal, crashFile, crash, maxRequests, files, probe,
    calledAs } = settings
  const channel = openChannel()
  const standby = standsBy ? standBy(channel, slotVariableNames) : null
  const routes = settings.countsRoutes ? createRoutes() : null
  const requests = watchRequests({ routes })
  const sessions = settings.sessions
    ? createSessions(settings.sessions, { worker, requests, onProblem: (message) =>
      channel.send({ type: 'problem', message }) })
    : NO_SESSIONS
  const latePorts = createLatePorts({
    isLate: () => ((isReady || countsAsReady) && (hasListened || hasBound)) || drain.isDraining() || !channel.isOpen(),
    connections: () => drain.connections()
  })
  const drain = createDrain({ requests, sessions, latePorts, onStart (limits) {
    naturalEnd?.hold()
    termination.prepare()
    tellDraining(limits, (message) => channel.send({ type: 'problem', message }))
  }, onHolds: (holds) => orphan.note(holds) || channel.send({ type: 'holds', ...holds }),
    onOverdue: () => orphan.endAlone(), onDrained: () => fatalGrace.isDying() || orphan.endAlone() || sayDrained() })
  const busyConnections = createBusyConnections({ requests, isDraining: drain.isDraining,
    onEnd: (connections) => channel.send({ type: 'let-go-done', connections }) })
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
  const readiness = probe &&
    createReadiness(probe, { createClient: createProbeClient, onSeen: (text) => channel.send({ type: 'probed', text }),
      onReady: acceptReady })
  const orphan = outliveMaster(settings.orphan, { drain, isOfUse })

  outliveFullDisk()
  readBeforeTimeout()
  if (cluster.worker) cluster.worker.id = worker
  if (calledAs) process.argv[1] = calledAs
  recordCrashes(crashFile, { channel, requests, fatalGrace })
  const termination = createTermination({ channel, drain, orphan })
  const onClosed = (address: string) => channel.send({ type: 'closed', address })
  const servers = watchServers(latePorts, { onListen, onListening: announceServer, onClosed,
    onSettled: beReadyIfServing })
  const evenAccept = createEvenAccept({ onKnown: (isEven) => channel.send({ type: 'spread', isEven }) })
  watchDatagramServers(latePorts, { onBound: announceDatagrams, onClosed })
  shareSockets({ channel, drain, latePorts, deferral, receiveDeferral, evenAccept, sessions })
  // A server that has to answer before it is let in does not listen yet.
  const naturalEnd = readiness ? null : endWhenDone()
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
  tellInspection(channel)
  limitRequests(maxRequests)
  channel.on('limits', (limits) => {
    graceMs = limits.graceMs
    limitRequests(limits.maxRequests)
  })
  const activity = tellActivity(channel, { servesDatagrams: () => mayServeDatagrams, onIdle: serve })
  replaceBeforeLeaving({ ask () {
    naturalEnd?.hold()
    channel.send({ type: 'leaving' })
  }, isServing: () => isReady && !drain.isDraining(), ...keepAppChannel({ isOfUse }) })
  answerDiagnostics(channel)
  answerRequestLists(channel, requests)
  // The main module of a CommonJS app has run by the first turn after this.
  if (readySignal === 'online' && !readiness) setImmediate(beReady)
  if (readySignal !== 'message') readiness?.begin()
  keepOwnListeners()

  function isOfUse () {
    return !standby?.isWaiting() && (isReady || countsAsReady || (hasListened && !readiness))
  }

  function limitRequests (count: number) {
    requests.whenBegun(count, () => channel.send({ type: 'max-requests' }))
  }

  /** Tells whether it is the app's, and not one of what is loaded before that */
  function onListen (server: Server): boolean {
    drain.watch(server)
    if (standby && dispatch === 'shared') evenAccept.prepare()
    if (arePreloading()) return false
    loadedFiles.begin()
    appMetrics?.begin()
    routes?.begin()
    standby?.listens()
    return true
  }

  function announceServer (server: Server, address: string, isFixed: boolean) {
    hasListened = true
    activity.stop()
    channel.send({ type: 'listening', address, isFixed })
    if (readiness) return isReady || !isHttp(server) || readiness.listening(server, address)
    whenServing(server, serve)
  }

  /**
   * What is bound to a port of UDP is a server, unless one of HTTP is still to come, which has announced something to
   * its network before.
   */
  function announceDatagrams (address: string, isAlone: boolean) {
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

  /** The probe has succeeded. */
  function acceptReady (report: { probe: string, warmupFailed: string | null }) {
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
