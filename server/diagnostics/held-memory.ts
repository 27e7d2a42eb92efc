import { spawn, type ChildProcess } from 'node:child_process'
import { mkdirSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { freeMemory } from '../../workers/free-memory.ts'
import { attempt, errorText, succeeds } from '../errors.ts'
import { megabytesText } from '../lifecycle/duration.ts'
import { scriptPath } from '../system/built.ts'
import type { Holder } from './heap-holders.ts'
import type { Supervisor } from '../cluster/supervisor.ts'
import type { EventStream, NewEvent } from '../events/stream.ts'
import type { History } from '../../db/history.ts'

const LOOK = scriptPath('heap-look.js')
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
/** The look gets a third of the CPU that an app gets on a busy machine, and takes a minute there, not ten. */
const NICE = 5
const MAX_NAMES = 5
const MAX_EARLIER = 100
/** Names on the way that no app has given. */
const OF_RUNTIME =
  /^(?:\(.*\)|<.*>|global.*|process|mainModule|require|cache|children|exports|context|table|elements|properties|shared|code|map|extension|previous|native_context|__proto__|)$/

/**
 * Tells what held the memory of a worker that was recycled for it: the worker writes its heap once it has nothing open
 * any more, another process looks at it, the history gets the few largest holders, and the file, which has all that was
 * in memory, is removed.
 */
export function createHeldMemory (
  { supervisor, events, history, folder, isOn, now = () => performance.now(), freeBytes = freeMemory }: {
    supervisor: Pick<Supervisor, 'snapshot' | 'tell' | 'writesHeap' | 'endHeap' | 'onHeapKept'>,
    events: EventStream,
    history: Pick<History, 'page'>,
    folder: string,
    isOn: () => boolean,
    /** monotonic, ms */
    now?: () => number,
    /** of memory, for this process */
    freeBytes?: () => number
  }
) {
  /** When the next one may be asked for, by release. */
  const notBefore: Map<string, number> = new Map()
  /** It was asked, and has neither answered nor ended yet. */
  let asked: { worker: number, slot: number | null, release: string } | null = null
  let watching: NodeJS.Timeout | undefined
  let looking: ChildProcess | null = null
  let isClosed = false
  // A master that was killed has left its files.
  sweep()
  const unsubscribe = events.subscribe(({ type, cause, worker, slot, release }) => {
    if (worker === null) return
    if (type === 'worker.recycling' && cause === 'memory-limit' && isOn())
      ask(worker, { slot, release: String(release) })
    else if (type === 'worker.exited' && asked?.worker === worker) missed(asked)
  })
  supervisor.onHeapKept((worker, message) => {
    if (asked?.worker !== worker) return
    const about = asked
    forget()
    // Nothing that it says is believed, but for its numbers.
    look({ ...about, requests: countOf(message.requests), rssBytes: countOf(message.rssBytes),
      writtenMs: countOf(message.ms),
      error: message.error === null ? null : String(message.error).slice(0, MAX_CHARS) })
  })

  return { close () {
    isClosed = true
    unsubscribe()
    clearInterval(watching)
    looking?.kill('SIGKILL')
    sweep()
  } }

  /** `worker`: serves until the next one is ready */
  function ask (worker: number, about: { slot: number | null, release: string }) {
    if (asked !== null || looking !== null || now() < (notBefore.get(about.release) ?? -Infinity)) return
    if (supervisor.snapshot().workers.find(({ id }) => id === worker)?.runtime !== 'node') return
    // The history tells of a disk that is full or gone.
    if (!succeeds(() => mkdirSync(folder, { recursive: true, mode: 0o700 }))) return
    notBefore.set(about.release, now() + APART_MS)
    asked = { worker, ...about }
    supervisor.tell(worker, { type: 'keep-heap', file: fileOf(worker) })
    let least = freeBytes() * MAX_TAKEN
    watching = setInterval(() => {
      if (!supervisor.writesHeap(worker)) least = freeBytes() * MAX_TAKEN
      else if (freeBytes() < least) endTooLarge(worker)
    }, LOOK_EVERY_MS)
  }

  /** `worker`: what V8 needs for a heap is known only once it has it: 0.2 to 20 times as much */
  function endTooLarge (worker: number) {
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

  /** `about`: a worker that has ended without it */
  function missed (about: NonNullable<typeof asked>) {
    forget()
    notBefore.set(about.release, now() + AGAIN_MS)
    sweep()
    tellNotKnown(about, 'the worker ended before its heap was written')
  }

  async function look ({ error, ...kept }: Kept & { error: string | null }) {
    try {
      if (error !== null) throw new Error(error)
      const { bytes, holders } = readFound(await run(fileOf(kept.worker)))
      tell(kept, { bytes, holders })
    } catch (problem) {
      if (!isClosed) tellNotKnown(kept, errorText(problem))
    } finally {
      looking = null
      sweep()
    }
  }

  /** @throws {Error} what the process said, or that it took too long */
  async function run (file: string): Promise<string> {
    const maxBytes = Math.round(freeBytes() * MAX_SHARE)
    const child = spawn(process.execPath, [`--max-old-space-size=${Math.round(maxBytes / 1024 ** 2)}`, LOOK, file,
      String(maxBytes)], { stdio: ['ignore', 'pipe', 'pipe'], timeout: LOOK_MS, killSignal: 'SIGKILL', env: {} })
    looking = child
    if (child.pid !== undefined) attempt(() => os.setPriority(Number(child.pid), NICE))
    const exited = new Promise<{ code: number | null, signal: NodeJS.Signals | null }>((resolve, reject) =>
      child.once('error', reject).once('close', (code, signal) => resolve({ code, signal }))
    )
    const [found, said, { code, signal }] = await Promise.all([text(child.stdout), text(child.stderr), exited])
    if (code !== 0)
      throw new Error(
        /^Error: (.*)$/m.exec(said)?.[1] ?? `the process that looked at the heap ended by ${signal ?? `code ${code}`}`
      )
    return found
  }

  function tellNotKnown (about: Parameters<typeof publish>[0], reason: string) {
    publish(about, `what held the memory of worker ${about.worker} is not known: ${reason}`, {
      error: reason.slice(0, MAX_CHARS)
    })
  }

  function tell (kept: Kept, { bytes, holders }: { bytes: number, holders: Holder[] }) {
    const shown = holders.map((holder) => ({ ...holder, name: nameOf(holder),
      bytesPer1000Requests: kept.requests > 0 ? Math.round(holder.bytes / kept.requests * 1000) : null })
    )
    const [first] = shown
    const most = first
      ? `, ${megabytesText(first.bytes)} of it in ${first.count.toLocaleString('en')} ${
        first.count === 1 ? 'object' : 'objects'
      } at ${first.name}`
      : ''
    publish(kept, `worker ${kept.worker} held ${megabytesText(bytes)} in its heap when it was recycled${most}`, {
      heapBytes: bytes,
      rssBytes: kept.rssBytes,
      writtenMs: kept.writtenMs,
      requests: kept.requests,
      holders: shown,
      sinceRelease: first ? firstRelease(first.name) ?? kept.release : null
    })
  }

  /** @returns of the oldest event that tells of the same */
  function firstRelease (name: string): string | null {
    return attempt(() => {
      const { items } = history.page({ type: 'memory.examined', limit: MAX_EARLIER })
      return items.filter(({ detail }) => detail?.holders?.[0]?.name === name).at(-1)?.release ?? null
    })
  }

  function publish ({ worker, slot, release }: { worker: number, slot: number | null, release: string },
    message: string, detail: NewEvent['detail'])
  {
    events.publish({ type: 'memory.examined', worker, slot, release, actor: 'system', message, detail })
  }

  function fileOf (worker: number) {
    return path.join(folder, `${process.pid}-${worker}.heapsnapshot`)
  }

  /** The files hold all that was in the memory of workers. */
  function sweep () {
    attempt(() => rmSync(folder, { recursive: true, force: true }))
  }
}

type Kept = { worker: number, slot: number | null, release: string, requests: number, rssBytes: number,
  writtenMs: number }

/** Names the place of the objects as the app knows it: without what V8 and Node have on the way. */
export function nameOf ({ path: names, className, file }: Holder): string {
  const named = names.filter((name) => !OF_RUNTIME.test(name)).slice(-MAX_NAMES)
  return `${file === null ? '' : `${path.basename(file)}: `}${
    [...named, ...(named.length === 0 ? [className] : [])].join(' → ')
  }`
}

/** @returns the names in it are those of the app, and hostile */
function readFound (found: string): { bytes: number, holders: Holder[] } {
  const { bytes, holders } = JSON.parse(found)
  return { bytes: countOf(bytes),
    holders: [...holders].slice(0, MAX_HOLDERS).map((holder) => ({
      path: [...holder.path].slice(0, MAX_PATH).map((name) => String(name).slice(0, MAX_CHARS)),
      className: String(holder.className).slice(0, MAX_CHARS),
      count: countOf(holder.count),
      bytes: countOf(holder.bytes),
      file: holder.file === null ? null : String(holder.file).slice(0, MAX_CHARS)
    })) }
}

function countOf (value: unknown) {
  return Number.isSafeInteger(value) && Number(value) >= 0 ? Number(value) : 0
}
