import { spawn } from 'node:child_process'
import { readSync } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { loadHelperCalls } from './helper-calls.js'
import { loadSystemCalls } from './system-calls.js'

/** @typedef {import('./call-helper.js').Order} Order */
/** @typedef {import('./call-helper.js').Report} Report */
/** @typedef {import('./heard-program.js').Asked} Asked */
/** @typedef {import('./heard-program.js').Answer} Answer */
/** @typedef {import('./heard-program.js').SocketFile} SocketFile */
/** @typedef {import('../system/process-tree.js').TreeIdentity} TreeIdentity */
/**
 * What the helper tells of one program.
 * @typedef {object} Hooks
 * @property {(reason: string | null) => void} [onHeard]  null: what it binds is heard from now on; else why it is not
 * @property {() => void} [onStarted]  the program runs
 * @property {(reason: string) => void} [onFailed]  it cannot be executed; the process ends
 * @property {(asked: Asked) => void} onAsked  has to be answered
 * @property {(address: string, isFixed: boolean) => void} onListening
 * @property {(address: string) => void} onClosed
 * @property {(key: string) => void} onReleased
 * @property {(text: string) => void} onNote  why it does not share a socket, or not all of it
 * @property {(said: import('./notify-socket.js').Said) => void} onSaid
 */

/** @typedef {ReturnType<ReturnType<typeof createHelperLink>['add']>} HelperProgram */

const HELPER = fileURLToPath(new URL('call-helper.js', import.meta.url))
/** A program that has had the helper wait for it so often is not answered any more. */
const MAX_STRIKES = 3
const MAX_FILES = 300
const HELD_UP = `it has held up what answers its calls ${MAX_STRIKES} times, so nobody answers them any more: a call of bind(2), listen(2) or unlink(2) waits for ever`

/** The one helper of this process. @type {ReturnType<typeof createHelperLink> | undefined} */
let link

/**
 * @param {Hooks} hooks
 * @returns {HelperProgram | null} null: programs cannot be heard on this machine
 */
export function addToHelper (hooks) {
  return linkToHelper()?.add(hooks) ?? null
}

/** @param {string} app @param {SocketFile[]} files  of its sockets, whose paths no program removes */
export function keepSocketFiles (app, files) {
  linkToHelper()?.keepFiles(app, files)
}

function linkToHelper () {
  const [calls, helper] = [loadSystemCalls(), loadHelperCalls()]
  if (!calls || !helper) return null
  link ??= createHelperLink(calls, helper)
  return link
}

/**
 * The master's side of the call helper, which is started with the first program and ends with the last one. Where a program has it wait for too
 * long, it is ended by the kernel, and the next one goes on with all programs.
 * @param {import('./system-calls.js').SystemCalls} calls @param {import('./helper-calls.js').HelperCalls} helper
 */
function createHelperLink (calls, helper) {
  /** @typedef {{ hooks: Hooks, identity: TreeIdentity | null, notify: number | null, launching: number | null, isHeard: boolean, strikes: number, answers: Map<string, { answer: Answer, fd: () => number | undefined }>, looks: Map<number, () => void> }} Program */
  /** @type {Map<number, Program>} */
  const programs = new Map()
  /** By app. @type {Map<string, SocketFile[]>} */
  const filesOf = new Map()
  /** @type {{ orders: number, atWork: number, end: () => void } | null} */
  let running = null
  let count = 0

  /** @type {{ [Type in Report['type']]: (program: Program, report: Extract<Report, { type: Type }>) => void }} */
  const reports = {
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
    started ({ hooks }) { hooks.onStarted?.() },
    failed ({ hooks }, { reason }) { hooks.onFailed?.(reason) },
    asked ({ hooks }, { asked }) { hooks.onAsked(asked) },
    answered ({ answers }, { id }) { answers.delete(id) },
    listening ({ hooks }, { address, isFixed }) { hooks.onListening(address, isFixed) },
    closed ({ hooks }, { address }) { hooks.onClosed(address) },
    released ({ hooks }, { key }) { hooks.onReleased(key) },
    note ({ hooks }, { text }) { hooks.onNote(text) },
    said ({ hooks }, { said }) { hooks.onSaid(said) },
    looked ({ looks }, { look }) {
      looks.get(look)?.()
      looks.delete(look)
    },
    over () {}
  }

  return {
    /** @param {Hooks} hooks */
    add (hooks) {
      const number = ++count
      /** @type {Program} */
      const program = { hooks, identity: null, notify: null, launching: null, isHeard: false, strikes: 0, answers: new Map(), looks: new Map() }
      programs.set(number, program)
      // Once it is closed, nobody starts a helper for it.
      const order = (/** @type {any} */ what, /** @type {number | undefined} */ fd = undefined) => { if (programs.has(number)) send({ program: number, ...what }, fd) }

      return {
        /** @param {number} channel  a socket to the launcher of the program, which is closed in the end */
        launch (channel) {
          program.launching = channel
          order({ type: 'launch' }, channel)
        },

        /** @param {TreeIdentity} identity */
        isOf (identity) {
          program.identity = identity
          order({ type: 'identity', identity })
        },

        /** What answers the calls of a program that runs is looked for in its processes. */
        find () {
          program.isHeard = true
          order({ type: 'find' })
        },

        /** @param {number} socket  at which the program says how it does */
        hearNotify (socket) {
          program.notify = socket
          order({ type: 'notify' }, socket)
        },

        /** @param {Answer} answer @param {() => number | undefined} [fd]  of the socket that the program gets */
        answer (answer, fd = () => undefined) {
          program.answers.set(answer.asked.id, { answer, fd })
          order({ type: 'answer', answer }, fd())
        },

        /** @returns {Promise<void>} until it is known what the program has closed */
        look () {
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

    /** @param {string} app @param {SocketFile[]} files  whose paths no program removes */
    keepFiles (app, files) {
      // Of more than these only the latest are kept: they have to fit into one message.
      const latest = files.slice(-MAX_FILES)
      filesOf.set(app, latest)
      if (running) send({ type: 'files', app, files: latest })
    }
  }

  /** @param {Order} order @param {number | undefined} [fd]  goes along */
  function send (order, fd) {
    const { orders } = running ?? start()
    // One that has ended is replaced as soon as that is known, and the next one gets all orders that count.
    calls.send(orders, JSON.stringify(order), fd)
  }

  /** Its launcher has been heard, or nobody waits for it any more. @param {Program} program */
  function endLaunch (program) {
    if (program.launching !== null) calls.close(program.launching)
    program.launching = null
  }

  function start () {
    const [orders, theirs] = calls.socketPair() ?? []
    const atWork = helper.memoryFile('clusterdeck-call-helper')
    if (orders === undefined || theirs === undefined || atWork < 0) throw new Error('no descriptor is left for the process that answers programs')
    const child = spawn(process.execPath, [HELPER], { cwd: '/', env: {}, stdio: ['ignore', 'pipe', 'inherit', theirs, atWork], detached: true })
    calls.close(theirs)
    child.unref()
    const output = /** @type {import('node:net').Socket} */ (child.stdout)
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

    /** @param {boolean} isHeldUp */
    function onEnd (isHeldUp) {
      if (running !== own) return
      const work = Buffer.alloc(16)
      readSync(atWork, work, 0, work.length, 0)
      end()
      goOn({ culprit: Number(work.readBigUInt64LE(0)), received: work.readBigUInt64LE(8), isHeldUp })
    }
  }

  /** @param {{ culprit: number, received: bigint, isHeldUp: boolean }} how  `culprit`: the program that the helper was at work for when it ended; `received`: a call of it without an answer; 0: none */
  function goOn ({ culprit, received, isHeldUp }) {
    for (const [number, program] of programs) {
      const { hooks, identity, notify, launching, answers } = program
      if (isHeldUp && number === culprit && ++program.strikes === MAX_STRIKES) hooks.onNote(HELD_UP)
      settleLooks(program)
      if (program.strikes >= MAX_STRIKES || identity === null) continue
      send({ program: number, type: 'identity', identity })
      if (notify !== null) send({ program: number, type: 'notify' }, notify)
      if (launching !== null) send({ program: number, type: 'launch' }, launching)
      if (program.isHeard) send({ program: number, type: 'find', ...(number === culprit && received > 0n && { received: String(received) }) })
      for (const { answer, fd } of answers.values()) send({ program: number, type: 'answer', answer }, fd())
    }
  }

  /** @param {string} line */
  function hear (line) {
    /** @type {Report} */
    const report = JSON.parse(line)
    const program = programs.get(report.program)
    if (program) reports[report.type](program, /** @type {any} */ (report))
  }
}

/** @param {{ looks: Map<number, () => void> }} program */
function settleLooks ({ looks }) {
  for (const resolve of looks.values()) resolve()
  looks.clear()
}
