import cluster from 'node:cluster'
import { tellState } from './beat.js'
import { openChannel } from './channel.js'
import { recordCrashes } from './crash.js'
import { answerDiagnostics } from './diagnostics.js'
import { createDrain } from './drain.js'
import { deferInterrupt } from './interrupt.js'
import { createLastWords } from './last-words.js'
import { shareSockets, watchServers } from './listen.js'
import { tellLoadedFiles } from './loaded-files.js'
import { outliveMaster } from './orphan.js'
import { watchRequests } from './requests.js'
import { sendVitals } from './vitals.js'

/**
 * Everything that runs inside a worker beside the app.
 * @param {import('./protocol.js').BootSettings} settings
 */
export function startWorker ({ worker, dispatch, readySignal, crashFile, crash, orphan: orphanSettings, maxRequests, files }) {
  const channel = openChannel()
  const drain = createDrain({ onDrained: () => lastWords.isDying() || orphan.endAlone() || sayDrained() })
  const hasSockets = dispatch === 'shared'
  const requests = watchRequests()
  const lastWords = createLastWords({ ...crash, requests, drain, channel })
  const loadedFiles = tellLoadedFiles(channel, files)
  let isReady = false
  let hasListened = false
  const orphan = outliveMaster(orphanSettings, { drain, hasSockets, isOfUse: () => isReady || hasListened })

  if (cluster.worker) cluster.worker.id = worker
  recordCrashes(crashFile, { requests, lastWords })
  deferInterrupt(drain)
  watchServers({ onListen, onListening: announce })
  if (hasSockets) shareSockets({ channel, isDraining: drain.isDraining })
  channel.on('drain', drain.start)
  channel.on('outlive', orphan.outlive)
  channel.send({ type: 'hello' })
  const vitals = sendVitals({ channel, requests, servers: drain.servers })
  tellState(channel, { maxRequests })
  answerDiagnostics(channel)
  // The main module of a CommonJS app has run by the first turn after the preload.
  if (readySignal === 'online') setImmediate(beReady)

  function onListen (/** @type {import('node:net').Server} */ server) {
    drain.watch(server)
    loadedFiles.begin()
  }

  function announce (/** @type {string} */ address) {
    hasListened = true
    channel.send({ type: 'listening', address })
    // One turn later, so that an app that listens on several addresses at once has asked for all of them.
    if (!isReady && readySignal === 'listening') setImmediate(beReady)
  }

  function sayDrained () {
    // What was answered since the last report counts too.
    vitals.send()
    channel.send({ type: 'drained' })
  }

  function beReady () {
    if (isReady) return
    isReady = true
    loadedFiles.begin()
    channel.send({ type: 'ready' })
  }
}
