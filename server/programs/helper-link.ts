import { spawn } from 'node:child_process'
import { readSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { loadHelperCalls, type HelperCalls } from './helper-calls.ts'
import { loadSystemCalls, type SystemCalls } from './system-calls.ts'
import { scriptPath } from '../system/built.ts'
import type { Socket } from 'node:net'
import type { Order, Ordered, Report } from './call-helper.ts'
import type { Answer, Asked, SocketFile } from './heard-program.ts'
import type { TreeIdentity } from '../system/process-tree.ts'
import type { Said } from './notify-socket.ts'

/** What the helper tells of one program. */
export type Hooks = {
  /** null: what it binds is heard from now on; else why it is not */
  onHeard?: (reason: string | null) => void,
  /** the program runs */
  onStarted?: () => void,
  /** it cannot be executed; the process ends */
  onFailed?: (reason: string) => void,
  /** has to be answered */
  onAsked: (asked: Asked) => void,
  onListening: (address: string, isFixed: boolean) => void,
  onClosed: (address: string) => void,
  onReleased: (key: string) => void,
  /** why it does not share a socket, or not all of it */
  onNote: (text: string) => void,
  onSaid: (said: Said) => void
}

export type HelperProgram = ReturnType<ReturnType<typeof createHelperLink>['add']>

const HELPER = scriptPath('call-helper.js')
/** A program that has had the helper wait for it so often is not answered any more. */
const MAX_STRIKES = 3
const MAX_FILES = 300
const HELD_UP =
  `it has held up what answers its calls ${MAX_STRIKES} times, so nobody answers them any more: a call of bind(2), listen(2) or unlink(2) waits for ever`

/** The one helper of this process. */
let link: ReturnType<typeof createHelperLink> | undefined

/** Null: programs cannot be heard on this machine */
export function addToHelper (hooks: Hooks): HelperProgram | null {
  return linkToHelper()?.add(hooks) ?? null
}

/** `files`: of its sockets, whose paths no program removes */
export function keepSocketFiles (app: string, files: SocketFile[]) {
  linkToHelper()?.keepFiles(app, files)
}

function linkToHelper () {
  const [calls, helper] = [loadSystemCalls(), loadHelperCalls()]
  if (!calls || !helper) return null
  link ??= createHelperLink(calls, helper)
  return link
}

/**
 * The master's side of the call helper, which is started with the first program and ends with the last one. Where a
 * program has it wait for too long, it is ended by the kernel, and the next one goes on with all programs.
 */
function createHelperLink (calls: SystemCalls, helper: HelperCalls) {
  type Program = { hooks: Hooks, identity: TreeIdentity | null, notify: number | null, launching: number | null,
    isHeard: boolean, strikes: number, answers: Map<string, { answer: Answer, fd: () => number | undefined }>,
    looks: Map<number, () => void> }
  const programs: Map<number, Program> = new Map()
  /** By app. */
  const filesOf: Map<string, SocketFile[]> = new Map()
  let running: { orders: number, atWork: number, end: () => void } | null = null
  let count = 0

  const reports: { [Type in Report['type']]: (program: Program, report: Extract<Report, { type: Type }>) => void } = {
    heard (program) {
      program.isHeard = true
      endLaunch(program)
      program.hooks.onHeard?.(null)
    },
    unheard (program, { reason }) {
      program.isHeard = false
      endLaunch(program)
      program.hooks.onHeard?.(reason)
    },
    started ({ hooks }) {
      hooks.onStarted?.()
    },
    failed ({ hooks }, { reason }) {
      hooks.onFailed?.(reason)
    },
    asked ({ hooks }, { asked }) {
      hooks.onAsked(asked)
    },
    answered ({ answers }, { id }) {
      answers.delete(id)
    },
    listening ({ hooks }, { address, isFixed }) {
      hooks.onListening(address, isFixed)
    },
    closed ({ hooks }, { address }) {
      hooks.onClosed(address)
    },
    released ({ hooks }, { key }) {
      hooks.onReleased(key)
    },
    note ({ hooks }, { text }) {
      hooks.onNote(text)
    },
    said ({ hooks }, { said }) {
      hooks.onSaid(said)
    },
    looked ({ looks }, { look }) {
      looks.get(look)?.()
      looks.delete(look)
    },
    over () {}
  }

  return {
    add (hooks: Hooks) {
      const number = ++count
      const program: Program = { hooks, identity: null, notify: null, launching: null, isHeard: false, strikes: 0,
        answers: new Map(), looks: new Map() }
      programs.set(number, program)
      // Once it is closed, nobody starts a helper for it.
      const order = (what: Ordered, fd?: number) => {
        if (programs.has(number)) send({ program: number, ...what }, fd)
      }

      return {
        /** `channel`: a socket to the launcher of the program, which is closed in the end */
        launch (channel: number) {
          program.launching = channel
          order({ type: 'launch' }, channel)
        },

        isOf (identity: TreeIdentity) {
          program.identity = identity
          order({ type: 'identity', identity })
        },

        /** What answers the calls of a program that runs is looked for in its processes. */
        find () {
          program.isHeard = true
          order({ type: 'find' })
        },

        /** `socket`: at which the program says how it does */
        hearNotify (socket: number) {
          program.notify = socket
          order({ type: 'notify' }, socket)
        },

        /** `fd`: of the socket that the program gets */
        answer (answer: Answer, fd: () => number | undefined = () => undefined) {
          program.answers.set(answer.asked.id, { answer, fd })
          order({ type: 'answer', answer }, fd())
        },

        /** @returns until it is known what the program has closed */
        look (): Promise<void> {
          const look = ++count
          return new Promise((resolve) => {
            if (!programs.has(number)) return resolve()
            program.looks.set(look, resolve)
            order({ type: 'look', look })
          })
        },

        close () {
          if (!programs.delete(number)) return
          endLaunch(program)
          settleLooks(program)
          if (programs.size > 0) send({ program: number, type: 'forget' })
          else running?.end()
        }
      }
    },

    /** `files`: whose paths no program removes */
    keepFiles (app: string, files: SocketFile[]) {
      // Of more than these only the latest are kept: they have to fit into one message.
      const latest = files.slice(-MAX_FILES)
      filesOf.set(app, latest)
      if (running) send({ type: 'files', app, files: latest })
    }
  }

  /** `fd`: goes along */
  function send (order: Order, fd?: number | undefined) {
    const { orders } = running ?? start()
    // One that has ended is replaced as soon as that is known, and the next one gets all orders that count.
    calls.send(orders, JSON.stringify(order), fd)
  }

  /** Its launcher has been heard, or nobody waits for it any more. */
  function endLaunch (program: Program) {
    if (program.launching !== null) calls.close(program.launching)
    program.launching = null
  }

  function start () {
    const [orders, theirs] = calls.socketPair() ?? []
    const atWork = helper.memoryFile('clusterdeck-call-helper')
    if (orders === undefined || theirs === undefined || atWork < 0)
      throw new Error('no descriptor is left for the process that answers programs')
    const child = spawn(process.execPath, [HELPER], { cwd: '/', env: {},
      stdio: ['ignore', 'pipe', 'inherit', theirs, atWork], detached: true })
    calls.close(theirs)
    child.unref()
    const output = child.stdout as Socket
    output.unref()
    createInterface(output).on('line', hear)
    const own = { orders, atWork, end }
    child.once('error', () => onEnd(false)).once('close', (_code, signal) => onEnd(signal === 'SIGALRM'))
    running = own
    for (const [app, files] of filesOf) send({ type: 'files', app, files })
    return own

    function end () {
      if (running === own) running = null
      calls.close(own.orders)
      calls.close(atWork)
    }

    function onEnd (isHeldUp: boolean) {
      if (running !== own) return
      const work = Buffer.alloc(16)
      readSync(atWork, work, 0, work.length, 0)
      end()
      goOn({ culprit: Number(work.readBigUInt64LE(0)), received: work.readBigUInt64LE(8), isHeldUp })
    }
  }

  /**
   * @param how `culprit`: the program that the helper was at work for when it ended; `received`: a call of it without
   * an answer; 0: none
   */
  function goOn ({ culprit, received, isHeldUp }: { culprit: number, received: bigint, isHeldUp: boolean }) {
    for (const [number, program] of programs) {
      const { hooks, identity, notify, launching, answers } = program
      if (isHeldUp && number === culprit && ++program.strikes === MAX_STRIKES) hooks.onNote(HELD_UP)
      settleLooks(program)
      if (program.strikes >= MAX_STRIKES || identity === null) continue
      send({ program: number, type: 'identity', identity })
      if (notify !== null) send({ program: number, type: 'notify' }, notify)
      if (launching !== null) send({ program: number, type: 'launch' }, launching)
      if (program.isHeard)
        send({ program: number, type: 'find',
          ...(number === culprit && received > 0n && { received: String(received) }) })
      for (const { answer, fd } of answers.values()) send({ program: number, type: 'answer', answer }, fd())
    }
  }

  function hear (line: string) {
    const report: Report = JSON.parse(line)
    const program = programs.get(report.program)
    if (program) take(program, report.type, report)
  }

  function take<Type extends Report['type']> (program: Program, type: Type, report: Extract<Report, { type: Type }>) {
    reports[type](program, report)
  }
}

function settleLooks ({ looks }: { looks: Map<number, () => void> }) {
  for (const resolve of looks.values()) resolve()
  looks.clear()
}
