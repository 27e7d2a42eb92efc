import { readFileSync } from 'node:fs'
import { openHistory } from '../db/history.js'
import { createAdmin } from './admin/listener.js'
import { createForker } from './cluster/forker.js'
import { listenForSignals } from './cluster/signals.js'
import { createSupervisor } from './cluster/supervisor.js'
import { openDataDir } from './data-dir.js'
import { createDeck } from './deck.js'
import { createEventStream } from './event-stream.js'
import { connectKeeper } from './keeper-link.js'
import { createState } from './lifecycle/state.js'
import { createLog } from './log.js'
import { createRecorder } from './recorder.js'
import { inherit, rememberFor, signMemory } from './succession.js'
import { createTerminal } from './terminal.js'

const { version } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'))

const KILL_PATIENCE_MS = 1000

/**
 * Makes and starts a whole master: the one place where its parts meet. It owns the signals of this process until
 * `stopped`.
 * @param {import('./config.js').Config} config
 * @param {{ stdout?: NodeJS.WritableStream, stderr?: NodeJS.WritableStream }} [streams]
 * @returns {Promise<{ adminUrl: string, stopped: Promise<number> }>} `stopped`: the exit code
 * @throws {import('./errors.js').DeckError} entry-not-found, data-dir-unusable, master-running, port-in-use, listen-failed; then nothing was started
 */
export async function startMaster (config, { stdout = process.stdout, stderr = process.stderr } = {}) {
  const keeper = await connectKeeper()
  const dataDir = openDataDir(config.dataDir)
  dataDir.lock()
  const { lost, left, release, workers, nextWorker } = inherit(dataDir.memory.read(), config, keeper.predecessor)
  const log = createLog(dataDir.logFile)
  process.on('uncaughtExceptionMonitor', (error) => log.fatal({ err: error }, 'the master failed'))
  const history = openHistory({ file: dataDir.historyFile, retention: config.history })
  const events = createEventStream({
    lastId: history.lastEventId(),
    onError: (error, event) => log.error({ err: error, event }, 'an event subscriber failed')
  })
  const recorder = createRecorder({ history, events })
  const terminal = createTerminal({ stdout })
  // EPIPE, as for the terminal.
  stderr.on('error', () => {})
  events.subscribe(terminal.show)

  const startedAt = new Date()
  const supervisor = createSupervisor(createState({
    options: { ready: config.ready, drain: config.drain, stop: config.stop, restart: config.restart },
    release,
    time: startedAt.getTime(),
    lastRollout: history.lastRolloutId(),
    lastRelease: history.lastReleaseNumber(),
    nextWorker
  }), { fork: createForker(config, { ...dataDir, outlives: () => true }), events, keeper, onStartBlocked: giveUp })
  const master = { pid: process.pid, version, nodeVersion: process.version, startedAt: startedAt.toISOString() }
  const deck = createDeck({ config, supervisor, events, history, master })
  const adminSocket = `admin ${config.admin.host}:${config.admin.port}`
  const admin = createAdmin({ deck, history, token: dataDir.token(), ...config.admin, socket: keeper.held.get(adminSocket)?.handle, log })

  const { url: adminUrl, socket } = await admin.listen().catch(async (error) => {
    await recorder.close()
    history.close()
    throw error
  })
  keeper.hold(adminSocket, socket)
  if (lost) recordLoss(lost)
  signMemory(dataDir.memory)
  dataDir.announce({ pid: process.pid, adminUrl, startedAt: master.startedAt })
  if (history.movedAside) terminal.line(`the history could not be read and was moved to ${history.movedAside}; a new one begins`)

  const stopListening = listenForSignals({
    onStop () {
      terminal.line('stopping: the workers answer what they have; once more to stop at once')
      dispatch({ type: 'stop' })
    },
    onKill: () => end(1),
    onDeploy: () => dispatch({ type: 'rollout', kind: 'deploy' }),
    onRestart: () => dispatch({ type: 'rollout', kind: 'restart' })
  })

  /** @type {(exitCode: number) => void} */
  let resolveStopped
  /** @type {Promise<number>} */
  const stopped = new Promise((resolve) => { resolveStopped = resolve })
  let hasEnded = false

  events.publish({ type: 'master.started', pid: process.pid, actor: 'system', detail: { version, nodeVersion: process.version, workers } })
  const startTime = performance.now()
  const stopWaiting = events.subscribe(announceStart)
  const stopRemembering = rememberFor({ memory: dataDir.memory, events, supervisor, config })
  supervisor.start({ workers, left, exits: keeper.exits, isNewRelease: !('id' in release) })
  supervisor.finished.then(() => end(0))
  keeper.on('reaped', supervisor.reaped)
  keeper.onLost(() => events.publish({ type: 'keeper.lost', actor: 'system', message: 'the keeper is gone: this master goes on, but nobody would start the next one' }))
  keeper.send({ type: 'started', giveUpAfter: config.keeper.giveUpAfter })
  return { adminUrl, stopped }

  function announceStart () {
    if (supervisor.snapshot().state !== 'running') return
    stopWaiting()
    terminal.started({
      version,
      entry: config.entry,
      workers,
      addresses: supervisor.addresses(),
      signInLink: admin.signInLink(),
      bootMs: Math.round(performance.now() - startTime)
    })
  }

  /** @param {import('./keeper-link.js').Exit} exit what the master before could not record itself */
  function recordLoss ({ pid, code, signal }) {
    events.publish({ type: 'master.stopped', cause: 'master-lost', pid, code, signal, message: `the master (pid ${pid}) ended without stopping its workers` })
    for (const rollout of history.unfinishedRollouts()) {
      const reason = `the master (pid ${pid}) ended while it ran`
      const detail = { ...rollout, state: 'failed', done: true, finishedAt: new Date().toISOString(), reason: rollout.reason ?? reason }
      events.publish({ type: 'rollout.failed', cause: 'master-lost', rollout: rollout.id, release: rollout.to, actor: rollout.actor, message: detail.reason, detail })
    }
  }

  /** @param {Record<string, any>} command one that came by a signal */
  function dispatch (command) {
    try {
      deck.dispatch({ ...command, actor: 'signal' })
    } catch (/** @type {any} */ error) {
      terminal.line(`not done: ${error.message}`)
    }
  }

  /** @param {import('./cluster/sockets.js').BindError} error */
  function giveUp ({ message }) {
    stderr.write(`clusterdeck: ${message}\n`)
    end(1)
  }

  /** Their exits are still recorded; one that the kernel does not let go is not waited for. */
  async function killWorkers () {
    if (supervisor.snapshot().state !== 'stopping') dispatch({ type: 'stop' })
    supervisor.killAll()
    const { promise, cancel } = timeout(KILL_PATIENCE_MS)
    await Promise.race([supervisor.finished, promise])
    cancel()
  }

  /** @param {number} exitCode 1: without any grace */
  async function end (exitCode) {
    if (hasEnded) return
    hasEnded = true
    keeper.send({ type: 'ending' })
    if (exitCode !== 0) await killWorkers()
    events.publish({ type: 'master.stopped', pid: process.pid, code: exitCode, uptimeMs: Date.now() - startedAt.getTime() })
    stopRemembering()
    await admin.close()
    await recorder.close()
    history.close()
    dataDir.memory.clear()
    dataDir.withdraw()
    dataDir.unlock()
    stopListening()
    resolveStopped(exitCode)
  }
}

/** @param {number} ms */
function timeout (ms) {
  /** @type {NodeJS.Timeout} */
  let timer
  const promise = new Promise((resolve) => { timer = setTimeout(resolve, ms) })
  return { promise, cancel: () => clearTimeout(timer) }
}
