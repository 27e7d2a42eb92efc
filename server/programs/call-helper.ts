// Answers the calls of all programs of a master, in a process of its own: a program can make whoever answers it wait,
// and no master may. It does one thing after the other, and waits in poll(2), so it has no use for Node's event loop.
import { existsSync, writeSync } from 'node:fs'
import { treeOf, type TreeIdentity } from '../system/process-tree.ts'
import { createHeardProgram, findListener, type Answer, type SocketFile, type Told } from './heard-program.ts'
import { loadHelperCalls, type HelperCalls } from './helper-calls.ts'
import { readSaid, takeBatch, type Said } from './notify-socket.ts'
import { loadSystemCalls, type SystemCalls } from './system-calls.ts'

/**
 * What the master orders, each with a descriptor where it says so. `launch`: a launcher starts the program, with the
 * socket to it; `find`: a program runs already; `received`: what a helper before has left without an answer; `notify`:
 * with the socket at which the program says how it does; `answer`: with a socket of the master, or none; `look`: tell
 * what it has closed. `files`: of all sockets of an app, whose paths no program removes.
 */
export type Ordered = { type: 'launch' } | { type: 'identity', identity: TreeIdentity } | { type: 'find',
  received?: string } | { type: 'notify' } | { type: 'answer', answer: Answer } | { type: 'look', look: number } | {
  type: 'forget'
}
type ToProgram = { program: number } & Ordered
export type Order = ToProgram | { type: 'files', app: string, files: SocketFile[] }
/**
 * `heard`: its calls are answered from now on; `unheard`: nobody answers them, and why; `started`: the program has
 * taken the place of its launcher.
 */
export type Report =
  & { program: number }
  & (Told | { type: 'heard' } | { type: 'unheard', reason: string } | { type: 'started' } | { type: 'failed',
    reason: string } | { type: 'looked', look: number } | { type: 'said', said: Said })

/** Descriptors from the master: the report goes to the first one. */
const REPORT = 1
const ORDERS = 3
const AT_WORK = 4
/**
 * The kernel ends this process when it waits for longer; the master then starts another one, and knows for which
 * program.
 */
const PATIENCE_S = 3
const NOTIFY_PAUSE_MS = 100
const SOON_MS = 20

const system = loadSystemCalls()
const helper = loadHelperCalls()
if (system && helper) answerCalls(system, helper)

function answerCalls (calls: SystemCalls, waits: HelperCalls) {
  type Program = { number: number, identity: TreeIdentity | null, launcher: number | null, listener: number | null,
    heard: ReturnType<typeof createHeardProgram> | null, notify: number | null, notifyFrom: number }
  const programs: Map<number, Program> = new Map()
  /** By app. */
  const filesOf: Map<string, SocketFile[]> = new Map()
  let files: SocketFile[] = []
  /** What to do by descriptor. */
  let sources: Map<number, () => void> = new Map()
  /** When these change by themselves. */
  let wakeAt = 0
  let noted = { number: 0, received: 0n }
  const current = Buffer.alloc(16)

  const orders: {
    [Type in ToProgram['type']]: (program: Program, order: Extract<ToProgram, { type: Type }>,
      fd: number | null) => void
  } = { launch (program, _order, fd) {
    program.launcher = fd
  }, identity (program, { identity }) {
    program.identity = identity
  }, find (program, { received }) {
    if (program.identity === null) return
    const listener = findListener(calls, program.identity)
    if (listener < 0)
      return tell(program, { type: 'unheard',
        reason: `what answers its calls is not found (${waits.errorText(-listener)})` })
    hear(program, listener)
    if (received !== undefined) program.heard?.goOn(BigInt(received))
  }, notify (program, _order, fd) {
    program.notify = fd
  }, answer (program, { answer }, fd) {
    program.heard?.answer(answer, fd)
    if (fd !== null) calls.close(fd)
  }, look (program, { look }) {
    program.heard?.releaseClosed()
    tell(program, { type: 'looked', look })
  }, forget (program) {
    program.heard?.close()
    for (const fd of [program.launcher, program.notify]) if (fd !== null) calls.close(fd)
    programs.delete(program.number)
  } }

  for (;;) {
    waits.endAfter(PATIENCE_S)
    const now = performance.now()
    // Whoever asks once often asks again at once, so the end is put off for a moment and not called off.
    const ready = readySources(now, SOON_MS) ?? readyLater(now)
    for (const fd of ready) sources.get(fd)?.()
    // Nobody is there any more.
    if (ready.includes(ORDERS) && !takeOrder()) return
  }

  /** Null: none within this time */
  function readySources (now: number, timeoutMs: number): number[] | null {
    if (now >= wakeAt) sources = sourcesOf(now)
    const ready = waits.readable([ORDERS, ...sources.keys()], timeoutMs)
    return ready.length > 0 ? ready : null
  }

  function readyLater (now: number) {
    waits.endAfter(0)
    const ready = readySources(now, wakeAt === Infinity ? -1 : Math.max(1, wakeAt - now)) ?? []
    waits.endAfter(PATIENCE_S)
    return ready
  }

  function sourcesOf (now: number): typeof sources {
    const found: typeof sources = new Map()
    wakeAt = Infinity
    for (const program of programs.values()) {
      const { launcher, listener, notify, notifyFrom } = program
      if (launcher !== null) found.set(launcher, () => hearLauncher(program, launcher))
      if (listener !== null) found.set(listener, () => serveCall(program))
      if (notify !== null && now >= notifyFrom) found.set(notify, () => hearNotify(program, notify))
      else if (notify !== null) wakeAt = Math.min(wakeAt, notifyFrom)
    }
    return found
  }

  /** What is listened to has changed. */
  function lookAnew () {
    wakeAt = 0
  }

  function takeOrder () {
    const message = calls.take(ORDERS)
    if (message === null) return false
    const order: Order = JSON.parse(message.text)
    if (order.type === 'files') {
      filesOf.set(order.app, order.files)
      files = [...filesOf.values()].flat()
      return true
    }
    const program = programs.get(order.program) ??
      { number: order.program, identity: null, launcher: null, listener: null, heard: null, notify: null,
        notifyFrom: 0 }
    programs.set(order.program, program)
    lookAnew()
    noteWork(program, 0n)
    follow(program, order.type, order, message.descriptor)
    return true
  }

  function follow<Type extends ToProgram['type']> (program: Program, type: Type,
    order: Extract<ToProgram, { type: Type }>, fd: number | null)
  {
    orders[type](program, order, fd)
  }

  function hearLauncher (program: Program, channel: number) {
    const said = calls.take(channel)
    const { reason = null, failed = null } = said === null ? {} : JSON.parse(said.text)
    if (said === null || failed !== null) {
      calls.close(channel)
      program.launcher = null
      lookAnew()
      return tell(program, failed === null ? { type: 'started' } : { type: 'failed', reason: failed })
    }
    if (said.descriptor === null) tell(program, { type: 'unheard', reason })
    else hear(program, said.descriptor)
    calls.send(channel, '\n')
  }

  function hear (program: Program, listener: number) {
    lookAnew()
    program.listener = listener
    program.heard = createHeardProgram({ calls, helper: waits, listener, identity: () => program.identity,
      files: () => files, tell: (message) => tell(program, message), onReceived: (id) => noteWork(program, id) })
    tell(program, { type: 'heard' })
  }

  function serveCall (program: Program) {
    if (program.heard?.serve()) return
    program.heard?.close()
    program.listener = null
    program.heard = null
    lookAnew()
  }

  function hearNotify (program: Program, socket: number) {
    program.notifyFrom = performance.now() + NOTIFY_PAUSE_MS
    lookAnew()
    noteWork(program, 0n)
    for (const { pid, text } of takeBatch(socket, waits.closeCopy)) {
      // A sender that has ended meanwhile, such as systemd-notify in a script, was told the path by the program.
      const { identity } = program
      if (identity === null || pid === identity.pid || treeOf(identity).some((each) => each.pid === pid) ||
        !existsSync(`/proc/${pid}`)) tell(program, { type: 'said', said: readSaid(text) })
    }
  }

  /** For the master, where this process ends. `received`: 0: nothing. */
  function noteWork ({ number }: Program, received: bigint) {
    if (number === noted.number && received === noted.received) return
    noted = { number, received }
    current.writeBigUInt64LE(BigInt(number), 0)
    current.writeBigUInt64LE(received, 8)
    writeSync(AT_WORK, current, 0, current.length, 0)
  }

  function tell ({ number }: Program,
    message: Told | Report extends infer Each ? Each extends { program: number } ? Omit<Each, 'program'> : Each : never)
  {
    writeSync(REPORT, `${JSON.stringify({ program: number, ...message })}\n`)
  }
}
