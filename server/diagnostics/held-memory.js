import { spawn } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { freeMemory } from '../../workers/free-memory.js'
import { errorText } from '../errors.js'

/** @typedef {import('./heap-holders.js').Holder} Holder */

const LOOK = fileURLToPath(new URL('./heap-look.js', import.meta.url))
const LOOK_MS = 10 * 60_000
/** A leak is the same an hour later, and to look for it costs the machine some seconds. */
const APART_MS = 60 * 60_000
/** A worker that ended too soon has told nothing. */
const AGAIN_MS = 5 * 60_000
/** Of the memory that is free: what a look at the heap may take, and what the worker that writes it. */
const MAX_SHARE = 0.25
const MAX_TAKEN = 0.5
/** V8 takes 200 MB in a second. */
const LOOK_EVERY_MS = 200
const MAX_HOLDERS = 5
const MAX_PATH = 40
const MAX_CHARS = 200
const NICE = 10
const MAX_NAMES = 5
const MAX_EARLIER = 100
/** Names on the way that no app has given. */
const OF_RUNTIME = /^(?:\(.*\)|<.*>|global.*|process|mainModule|require|cache|children|exports|context|table|elements|properties|shared|code|map|extension|previous|native_context|__proto__|)$/

/**
 * Tells what held the memory of a worker that was recycled for it: the worker writes its heap once it has nothing open any more,
 * another process looks at it, the history gets the few largest holders, and the file, which has all that was in memory, is removed.
 * @param {object} parts
 * @param {Pick<import('../cluster/supervisor.js').Supervisor, 'snapshot' | 'tell' | 'writesHeap' | 'endHeap' | 'onHeapKept'>} parts.supervisor
 * @param {import('../events/stream.js').EventStream} parts.events
 * @param {Pick<import('../../db/history.js').History, 'page'>} parts.history
 * @param {string} parts.folder
 * @param {() => boolean} parts.isOn
 * @param {() => number} [parts.now]  monotonic, ms
 * @param {() => number} [parts.freeBytes]  of memory, for this process
 */
export function createHeldMemory ({ supervisor, events, history, folder, isOn, now = () => performance.now(), freeBytes = freeMemory }) {
  /** When the next one may be asked for, by release. @type {Map<string, number>} */
  const notBefore = new Map()
  /** It was asked, and has neither answered nor ended yet. @type {{ worker: number, slot: number | null, release: string } | null} */
  let asked = null
  /** @type {NodeJS.Timeout | undefined} */
  let watching
  /** @type {import('node:child_process').ChildProcess | null} */
  let looking = null
  let isClosed = false
  // A master that was killed has left its files.
  sweep()
  const unsubscribe = events.subscribe(({ type, cause, worker, slot, release }) => {
    if (worker === null) return
    if (type === 'worker.recycling' && cause === 'memory-limit' && isOn()) ask(worker, { slot, release: String(release) })
    else if (type === 'worker.exited' && asked?.worker === worker) missed(asked)
  })
  supervisor.onHeapKept((worker, message) => {
    if (asked?.worker !== worker) return
    const about = asked
    forget()
    // Nothing that it says is believed, but for its numbers.
    look({ ...about, requests: countOf(message.requests), rssBytes: countOf(message.rssBytes), writtenMs: countOf(message.ms), error: message.error === null ? null : String(message.error).slice(0, MAX_CHARS) })
  })

  return {
    close () {
      isClosed = true
      unsubscribe()
      clearInterval(watching)
      looking?.kill('SIGKILL')
      sweep()
    }
  }

  /** @param {number} worker  serves until the next one is ready @param {{ slot: number | null, release: string }} about */
  function ask (worker, about) {
    if (asked !== null || looking !== null || now() < (notBefore.get(about.release) ?? -Infinity)) return
    if (supervisor.snapshot().workers.find(({ id }) => id === worker)?.runtime !== 'node') return
    try {
      mkdirSync(folder, { recursive: true, mode: 0o700 })
    } catch {
      // The history tells of a disk that is full or gone.
      return
    }
    notBefore.set(about.release, now() + APART_MS)
    asked = { worker, ...about }
    supervisor.tell(worker, { type: 'keep-heap', file: fileOf(worker) })
    let least = freeBytes() * MAX_TAKEN
    watching = setInterval(() => {
      if (!supervisor.writesHeap(worker)) least = freeBytes() * MAX_TAKEN
      else if (freeBytes() < least) endTooLarge(worker)
    }, LOOK_EVERY_MS)
  }

  /** @param {number} worker  what V8 needs for a heap is known only once it has it: 0.2 to 20 times as much */
  function endTooLarge (worker) {
    if (!asked) return
    tellNotKnown(asked, 'half of the free memory was not enough to write its heap')
    forget()
    supervisor.endHeap(worker)
    sweep()
  }

  function forget () {
    asked = null
    clearInterval(watching)
  }

  /** @param {NonNullable<typeof asked>} about  a worker that has ended without it */
  function missed (about) {
    forget()
    notBefore.set(about.release, now() + AGAIN_MS)
    sweep()
    tellNotKnown(about, 'the worker ended before its heap was written')
  }

  /** @param {Kept & { error: string | null }} kept */
  async function look ({ error, ...kept }) {
    try {
      if (error !== null) throw new Error(error)
      const { bytes, holders } = readFound(await run(fileOf(kept.worker)))
      tell(kept, { bytes, holders })
    } catch (/** @type {any} */ problem) {
      if (!isClosed) tellNotKnown(kept, errorText(problem))
    } finally {
      looking = null
      sweep()
    }
  }

  /** @param {string} file @returns {Promise<string>} @throws {Error} what the process said, or that it took too long */
  async function run (file) {
    const maxBytes = Math.round(freeBytes() * MAX_SHARE)
    const child = spawn(process.execPath, [`--max-old-space-size=${Math.round(maxBytes / 1024 ** 2)}`, LOOK, file, String(maxBytes)], { stdio: ['ignore', 'pipe', 'pipe'], timeout: LOOK_MS, killSignal: 'SIGKILL', env: {} })
    looking = child
    if (child.pid !== undefined) attempt(() => os.setPriority(Number(child.pid), NICE))
    const exited = new Promise((resolve, reject) => child.once('error', reject).once('close', (code, signal) => resolve({ code, signal })))
    const [found, said, { code, signal }] = await Promise.all([text(child.stdout), text(child.stderr), exited])
    if (code !== 0) throw new Error(/^Error: (.*)$/m.exec(said)?.[1] ?? `the process that looked at the heap ended by ${signal ?? `code ${code}`}`)
    return found
  }

  /** @param {Parameters<typeof publish>[0]} about @param {string} reason */
  function tellNotKnown (about, reason) {
    publish(about, `what held the memory of worker ${about.worker} is not known: ${reason}`, { error: reason.slice(0, MAX_CHARS) })
  }

  /** @param {Kept} kept @param {{ bytes: number, holders: Holder[] }} found */
  function tell (kept, { bytes, holders }) {
    const shown = holders.map((holder) => ({ ...holder, name: nameOf(holder), bytesPer1000Requests: kept.requests > 0 ? Math.round(holder.bytes / kept.requests * 1000) : null }))
    const [first] = shown
    const most = first ? `, ${inMegabytes(first.bytes)} of it in ${first.count.toLocaleString('en')} ${first.count === 1 ? 'object' : 'objects'} at ${first.name}` : ''
    publish(kept, `worker ${kept.worker} held ${inMegabytes(bytes)} in its heap when it was recycled${most}`, { heapBytes: bytes, rssBytes: kept.rssBytes, writtenMs: kept.writtenMs, requests: kept.requests, holders: shown, sinceRelease: first ? firstRelease(first.name) ?? kept.release : null })
  }

  /** @param {string} name @returns {string | null} of the oldest event that tells of the same */
  function firstRelease (name) {
    try {
      const { items } = history.page({ type: 'memory.examined', limit: MAX_EARLIER })
      return items.filter(({ detail }) => detail?.holders?.[0]?.name === name).at(-1)?.release ?? null
    } catch {
      return null
    }
  }

  /** @param {{ worker: number, slot: number | null, release: string }} about @param {string} message @param {object} detail */
  function publish ({ worker, slot, release }, message, detail) {
    events.publish({ type: 'memory.examined', worker, slot, release, actor: 'system', message, detail })
  }

  /** @param {number} worker */
  function fileOf (worker) {
    return path.join(folder, `${process.pid}-${worker}.heapsnapshot`)
  }

  /** The files hold all that was in the memory of workers. */
  function sweep () {
    attempt(() => rmSync(folder, { recursive: true, force: true }))
  }
}

/** @typedef {{ worker: number, slot: number | null, release: string, requests: number, rssBytes: number, writtenMs: number }} Kept */

/** Names the place of the objects as the app knows it: without what V8 and Node have on the way. @param {Holder} holder @returns {string} */
export function nameOf ({ path: names, className, file }) {
  const named = names.filter((name) => !OF_RUNTIME.test(name)).slice(-MAX_NAMES)
  return `${file === null ? '' : `${path.basename(file)}: `}${[...named, ...(named.length === 0 ? [className] : [])].join(' → ')}`
}

/** @param {string} found @returns {{ bytes: number, holders: Holder[] }} the names in it are those of the app, and hostile */
function readFound (found) {
  const { bytes, holders } = JSON.parse(found)
  return {
    bytes: countOf(bytes),
    holders: [...holders].slice(0, MAX_HOLDERS).map((holder) => ({
      path: [...holder.path].slice(0, MAX_PATH).map((name) => String(name).slice(0, MAX_CHARS)),
      className: String(holder.className).slice(0, MAX_CHARS),
      count: countOf(holder.count),
      bytes: countOf(holder.bytes),
      file: holder.file === null ? null : String(holder.file).slice(0, MAX_CHARS)
    }))
  }
}

/** @param {unknown} value */
function countOf (value) {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : 0
}

/** @param {number} bytes */
function inMegabytes (bytes) {
  return `${Math.round(bytes / 1024 ** 2)} MB`
}

/** @param {() => void} work */
function attempt (work) {
  try {
    work()
  } catch {
    // ESRCH, EACCES: it is as well without it.
  }
}
