import { fork } from 'node:child_process'
import { attempt, errorText } from '../errors.ts'
import { guardChannel } from '../system/channel-guard.ts'
import { keepHeapSmall, keepYoungSmall } from '../system/heap.ts'
import { createIpcValidation } from '../system/ipc-validation.ts'
import { oneLine } from '../system/one-line.ts'
import { childrenOf } from '../system/children.ts'
import { programProcesses } from '../system/process-tree.ts'
import { existingFolder, workingFolder, type WorkingFolder } from '../system/working-folder.ts'
import { SIGNALS, STOP_SIGNALS } from '../system/signals.ts'
import { traceStep } from '../system/start-trace.ts'
import { hasControllingTerminal } from '../system/terminal.ts'
import { takeInheritedSockets } from '../systemd/activated-sockets.ts'
import { createSocketStore } from '../systemd/socket-store.ts'
import { FOLDER_VARIABLE, KEPT_VARIABLE, noteExit, sendToMaster } from './link.ts'
import { blankRecord, recordExit } from '../lifecycle/restart-policy.ts'
import { durationText, megabytesText } from '../lifecycle/duration.ts'
import { LEAN_FLAGS, leanEnvironment } from './lean.ts'
import { createMasterWatch, type Hang, type Watched } from './master-watch.ts'
import { createMemory } from './memory.ts'
import { whyMisshapen } from './message-shape.ts'
import { ownPrograms, trustedPrograms, type Programs } from './programs.ts'
import { createReaper } from './reaper.ts'
import type { SocketHandle } from '../../workers/node-internals.d.ts'
import type { Exit, HeldSocket, Predecessor, ToKeeper } from './link.ts'

/**
 * The process that `clusterdeck start` becomes: it starts the master, holds a copy of every listening socket and starts
 * the next master when one dies. Nothing else happens here, so that nothing here can fail; it imports no package.
 * The messages are told in link.ts.
 */

const POLICY = Object.freeze({ minDelayMs: 100, maxDelayMs: 5_000, resetAfterMs: 10_000,
  intensity: { restarts: 5, windowMs: 60_000 } })

/** A master may take this long to end all workers at once. */
const END_PATIENCE_MS = 2500
/** A master that has not reported for this long gets no time; it reports once a second. */
const SILENT_MS = 1500
/** A master that is told to stop while it still starts may take this long to get the message. */
const START_PATIENCE_MS = 10_000
/** By these types Node tells that a listening socket comes along with a message. */
const HANDLE_TYPES = ['net.Native', 'dgram.Native']
const MAX_REASON_CHARS = 200

type MasterState = {
  /** monotonic ms */
  startedAt: number,
  hasStarted: boolean,
  hearsSignals?: boolean,
  /** its exit is meant */
  isEnding: boolean,
  /** the exit code of a start that failed */
  failure?: number,
  /** the sockets that it got when it began */
  given?: Set<SocketHandle>,
  hang?: Hang
}
type Master =
  & Watched
  & MasterState
/** by type */
type Messages = { [Message in ToKeeper as Message['type']]: Message }

/**
 * @param options `script`: as it was called, because a link may lead to a newer version by the time of an upgrade;
 * `folder`: where each master starts, also where that is gone, or its name leads elsewhere by then
 * @returns the exit code of its last master
 */
export function runKeeper ({ script, args, folder = workingFolder(), say = (line) => {
  process.stderr.write(`clusterdeck: ${line}\n`)
} }: { script: string, args: string[], folder?: WorkingFolder, say?: (line: string) => void }): Promise<number> {
  const held: Map<string, HeldSocket & { from?: Master }> = takeInheritedSockets({ say })
  /** It has them beside this process, and so after its end. */
  const store = createSocketStore(process.env.NOTIFY_SOCKET)
  const ownPids: Set<number | undefined> = new Set()
  // Masters have none: they are in sessions of their own.
  const hasTerminal = hasControllingTerminal()
  /** null while it waits to start one */
  let current: Master | null = null
  /** the one that is to take over in an upgrade */
  let next: Master | null = null
  /** the apps of a host that change to it, where there are several */
  let upgrading: string[] | undefined
  let predecessor: Predecessor | null = null
  /** What could not be written to the disk. */
  const memory = createMemory()
  /** the latest exits of orphans */
  const exits: Exit[] = []
  const own = ownPrograms(script)
  let execPath = own.node
  let [record, giveUpAfter, hasEverStarted] = [blankRecord(), 0, false]
  let retryTimer: NodeJS.Timeout | undefined
  let stopSignal: NodeJS.Signals | null = null
  let isUrgent = false
  /** the exit code */
  const ended: PromiseWithResolvers<number> = Promise.withResolvers()

  const handlers: {
    [Type in keyof Messages]: (master: Master, message: Messages[Type], handle: SocketHandle) => void
  } = { hello (master) {
    master.given = new Set([...held.values()].map(({ handle }) => handle))
    for (const [key, { handle, data }] of held) sendToMaster(master, { type: 'held', key, data }, handle)
    sendToMaster(master, { type: 'go', role: master === next ? 'next' : 'current', predecessor, exits, reaps,
      ...memory.greeting(), ...(master === next && { upgrading }) })
  }, hold (from, { key, data }, handle) {
    dropSocket(key)
    held.set(key, { handle, data, from })
    store.add(data, handle)
  }, drop (master, { key }) {
    if (master === current) dropSocket(key)
  }, started (master, options) {
    master.hasStarted = hasEverStarted = true
    execPath = master.child.spawnfile
    giveUpAfter = options.giveUpAfter ?? 0
    master.hearsSignals = options.hearsSignals
    watch.configure(options.hang)
    if (stopSignal) passSignal(master, stopSignal)
  }, watch (master, { hang }) {
    if (master === current) watch.configure(hang)
  }, beat: (master, beat) => watch.heard(master, beat), remember (master, { content, app }) {
    if (master === current) memory.remember(content, app)
  }, unsaved: (master, { event, app }) => memory.keep(event, app), saved: (master, { app }) => memory.saved(app),
    ending (master) {
      master.isEnding = true
    }, 'start-failed' (master, { code }) {
    if (!hasEverStarted) Object.assign(master, { isEnding: true, failure: code })
  }, cancel (master) {
    if (master === current) next?.child.kill('SIGKILL')
  }, upgrade (master, order) {
    if (master !== current || next) return
    upgrading = order.apps
    startNext(order.execPath ?? execPath)
  }, serving (master) {
    if (master === next) sendToMaster(current, { type: 'hand-over' })
  }, 'handed-over' (master) {
    if (master === current && next) promoteNext()
  }, relay (master, message) {
    sendToMaster(master === current ? next : current, message)
  } }
  const watch = createMasterWatch({
    // A master that has not started may still load, and its options are not known.
    list: () => livingMasters().filter(({ hasStarted }) => hasStarted),
    onAnswered: (master) => sendToMaster(master, { type: 'close-inspector' }),
    onHung
  })
  const ipcValidation = createIpcValidation({ tell: (_, line) => say(line),
    nameOf: (pid) => `the master (pid ${pid})` })
  for (const signal of SIGNALS) process.on(signal, () => forwardSignal(signal))
  process.stderr.on('error', () => {}) // EPIPE: nobody reads any more.
  current = startMaster(own)
  traceStep('starts the master')
  keepYoungSmall()
  keepHeapSmall()
  // The master loads meanwhile: the native calls take a while.
  const reaps = createReaper({ isOurs: (pid) => ownPids.has(pid), onReaped, say })
  return ended.promise

  /** Begins an upgrade, or tells the current master why the programs that it asked for are not trusted. */
  function startNext (node: string) {
    const { programs, distrust } = trustedPrograms({ node, script }, own)
    if (distrust === null) next = startMaster(programs)
    else sendToMaster(current, { type: 'upgrade-failed', reason: distrust })
  }

  /** Starts a master after a death: any is better than none. */
  function startAgain () {
    const { programs, distrust } = trustedPrograms({ node: execPath, script }, own)
    if (distrust !== null)
      say(
        `${distrust}; the next master starts with what the keeper itself runs, ${programs.node} and ${programs.script}`
      )
    return startMaster(programs)
  }

  function startMaster (programs: Programs): Master {
    const cwd = existingFolder(folder.named)
    if (cwd !== folder.named) say(`the working folder ${folder.named} is gone; the master starts in ${cwd}`)
    // The master has its own session: Ctrl-C in the terminal reaches only the keeper, which forwards it once.
    const env = { ...process.env, ...leanEnvironment(process.env), [KEPT_VARIABLE]: String(process.pid),
      [FOLDER_VARIABLE]: JSON.stringify(folder) }
    const child = fork(programs.script, args, { cwd, execPath: programs.node,
      execArgv: [...LEAN_FLAGS, ...process.execArgv], detached: true, env })
    const master = { child, startedAt: performance.now(), hasStarted: false, isEnding: false }
    ownPids.add(child.pid)
    const onInvalidMessage = (reason: string) =>
      ipcValidation.hear(Number(child.pid), oneLine(reason).slice(0, MAX_REASON_CHARS))
    guardChannel(child, { isExpected: () => false,
      isHandleExpected: ({ type, msg }) => HANDLE_TYPES.includes(String(type)) && whyMisshapen(msg, type) === null,
      onInvalidMessage })
    child.on('message', (message: ToKeeper, handle: SocketHandle) => {
      const reason = whyMisshapen(message, handle)
      if (reason) onInvalidMessage(reason)
      else passToHandler(master, message.type, message, handle)
    })
    child.on('exit', (code, signal) => onMasterExit(master, { code, signal }))
    child.on('error', (error) => {
      if (child.pid === undefined) onMasterExit(master, { code: null, signal: null, reason: error.message })
    })
    return master
  }

  function passToHandler<Type extends keyof Messages> (master: Master, type: Type, message: Messages[Type],
    handle: SocketHandle)
  {
    handlers[type](master, message, handle)
  }

  function dropSocket (key: string) {
    const { handle, data } = held.get(key) ?? {}
    held.delete(key)
    store.remove(data, held.values())
    handle?.close()
  }

  function onReaped (exit: Exit) {
    noteExit(exits, exit)
    sendToMaster(current, { type: 'reaped', ...exit })
  }

  function livingMasters () {
    return [current, next].filter((master) => master !== null)
  }

  function onHung (master: Master, hang: Hang) {
    master.hang = hang
    say(
      hang.memoryBytes === undefined
        ? `the master has not answered for ${durationText(hang.silentMs)} and is killed`
        : `the master takes ${megabytesText(hang.memoryBytes)} of memory and is killed`
    )
    master.child.kill('SIGKILL')
  }

  /** Kills masters and workers, whatever state they are in. */
  function endAll () {
    const pids = livingMasters().map(({ child }) => Number(child.pid))
    const workers = pids.flatMap((pid) => childrenOf(pid))
    for (const pid of [...pids, ...workers, ...childrenOf(process.pid), ...programProcesses()])
      attempt(() => process.kill(pid, 'SIGKILL')) // ESRCH: it has ended in between.
    ended.resolve(1)
  }

  function forwardSignal (signal: NodeJS.Signals) {
    if (signal === 'SIGHUP' && hasTerminal) {
      // A shell passes on what the kernel has sent already.
      if (!stopSignal) forwardSignal('SIGTERM')
      return
    }
    const isStop = STOP_SIGNALS.includes(signal)
    const isAgain = stopSignal !== null
    if (isStop) stopSignal = signal
    isUrgent ||= isStop && isAgain
    if (isStop && isAgain && current?.hasStarted) {
      const isSilent = current.heardAt !== undefined && performance.now() - current.heardAt > SILENT_MS
      setTimeout(endAll, isSilent ? 0 : END_PATIENCE_MS)
    }
    if (isStop && !isAgain && current && !current.hasStarted) setTimeout(endUnstarted, START_PATIENCE_MS, current)
    if (current?.hasStarted) passSignal(current, signal)
    else if (isStop && isAgain) endAll()
    // Only a master can drain the workers that may be there.
    else if (isStop && !current) retryStart()
  }

  function endUnstarted (master: Master) {
    if (master !== current || master.hasStarted) return
    say(`the master has not started within ${durationText(START_PATIENCE_MS)} after the signal to stop, and is killed`)
    endAll()
  }

  /** Sends a message: a master could not tell the keeper's signal from one that was sent to both. */
  function passSignal (master: Master, signal: NodeJS.Signals) {
    if (master.hearsSignals && master.child.connected) sendToMaster(master, { type: 'signal', signal })
    else master.child.kill(signal)
  }

  function retryStart () {
    clearTimeout(retryTimer)
    try {
      current = startAgain()
    } catch (error) {
      scheduleRestart(0, errorText(error)) // ENOMEM
    }
  }

  function onMasterExit (master: Master,
    { code, signal, reason = signal ?? `exit code ${code}` }: { code: number | null, signal: string | null,
      reason?: string })
  {
    ownPids.delete(master.child.pid)
    watch.forget(master.child.pid)
    ipcValidation.left(Number(master.child.pid))
    if (master === next) {
      next = null
      for (const [key, { from }] of held) if (from === master) dropSocket(key)
      sendToMaster(current, { type: 'upgrade-failed', reason })
    }
    if (master !== current) return
    // If no master has ever started, the exit code says what is wrong with the command line.
    if (master.isEnding || (stopSignal && !master.hasStarted) || (!hasEverStarted && code !== null))
      return ended.resolve(code ?? master.failure ?? 1)
    // This holds for a master that was killed because it hung, too: nobody waits for another one.
    if (isUrgent) return endAll()
    predecessor = { pid: Number(master.child.pid), code, signal, hang: master.hang ?? null }
    if (next) promoteNext()
    else scheduleRestart(performance.now() - master.startedAt, reason)
  }

  function scheduleRestart (uptimeMs: number, reason: string) {
    const death = recordExit(record, { at: performance.now(), uptimeMs, random: Math.random() }, POLICY)
    record = death.record
    current = null
    if (giveUpAfter > 0 && record.attempt > giveUpAfter) {
      say(`the master ended ${record.attempt} times in a row (${reason}); giving up (option keeper.giveUpAfter)`)
      return ended.resolve(1)
    }
    say(
      `the master ended (${reason}); the next one starts${
        death.delayMs > 0 ? ` in ${durationText(death.delayMs)}` : ''
      }`
    )
    retryTimer = setTimeout(retryStart, death.delayMs)
  }

  function promoteNext () {
    current = next
    next = null
    if (upgrading) giveLate(current)
    sendToMaster(current, { type: 'remember', ...memory.contents() })
    sendToMaster(current, { type: 'take-over', predecessor })
  }

  /**
   * Gives a master of an upgrade what has been held since it began: apps of a host that take no part are opened only
   * now.
   */
  function giveLate (master: Master | null) {
    for (const [key, { handle, data, from }] of held) {
      if (from !== master && !master?.given?.has(handle)) sendToMaster(master, { type: 'held', key, data }, handle)
    }
  }
}
