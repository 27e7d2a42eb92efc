import { createHash } from 'node:crypto'
import { createOutOfMemory, lacksMemory } from './oom.ts'
import { faultIn, lastLinesOf, noteFrom } from './last-words.ts'
import { CRASH_CAUSES, isOfDebugger, isOneOf } from '../causes.ts'
import { culpritOf, toRecord, type Exit, type ExitNote } from './record.ts'
import { createSourceMaps } from './source-maps.ts'
import { attempt } from '../errors.ts'
import type { CrashRecord } from '../../db/crashes.ts'
import type { History } from '../../db/history.ts'
import type { EventStream } from '../events/stream.ts'

export type CrashRecorder = ReturnType<typeof createCrashRecorder>
type Evidence = { note: ExitNote | null, memoryKind: CrashRecord['kind'] | null, stderr: string[], root: string | null,
  isProgram?: boolean, said?: string | null }

const STDERR_LINES = 50
const OF_CLUSTERDECK = 'clusterdeck: '
const OUR_LINES = 20
/** A trace, or an error with all that it has, may be this long. */
const TRACE_LINES = 1000
/** They are sent from outside: what a program has written before does not tell why. */
const OUTSIDE_SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT']
/**
 * There is one in a process: the kernel counts the workers of all apps together, and a death that is counted is of one
 * app alone.
 */
let lackedMemoryHere: ReturnType<typeof createOutOfMemory> | undefined

/**
 * If the database fails, so many records wait. Later crashes have no record, which is told once the database is back.
 */
const MAX_WAITING = 100

/** It has to go up with every change of how crashes are grouped; existing groups then stay as they are. */
const VERSION = 1

const MAX_FRAMES = 10
const MAX_MESSAGE_CHARS = 500

/**
 * Writes a record of every unexpected end of a worker at once, and sorts it into its group. It never throws: a database
 * that fails must not stop supervision.
 */
export function createCrashRecorder (
  { store, events, logs = { tail: () => [] }, vitals = { lastMinute: () => [] },
    lackedMemory = (lackedMemoryHere ??= createOutOfMemory()), hide = (record) => record, now = Date.now,
    soon = (work) => {
      Promise.resolve().then(work)
    } }: {
      /** if it throws, the record is kept for later */
      store: Pick<History['crashes'], 'record'>,
      events: Pick<EventStream, 'publish'>,
      logs?: {
        tail: (what: { slot: number | null, stream: 'stdout' | 'stderr', lines: number, worker?: number }) => string[]
      },
      vitals?: { lastMinute: (worker: number) => unknown[] },
      lackedMemory?: ReturnType<typeof createOutOfMemory>,
      /** takes out what nobody is to read */
      hide?: (record: CrashRecord) => CrashRecord,
      now?: () => number,
      soon?: (work: () => void) => void
    }
) {
  const { original } = createSourceMaps()
  let waiting: { record: CrashRecord, fingerprint: string }[] = []
  /** Of the crashes that have no record. */
  let lost: { count: number, from: string, to: string } | null = null

  return {
    /** Writes the records that wait, once the database works again. */
    catchUp () {
      attempt(writeWaiting, undefined)
    },

    /**
     * Finds out whether the process lacked memory, and what it wrote last.
     * @param exit `isProgram`: it was another program than Node, which leaves no note; `isAsTold`: it ended by the
     * signal that told it to;
     * `isOutOfMemory`: the kernel has killed a process of its control group
     * @returns `said`: the line that tells why; `note`: what a program has written of its error
     */
    examine (
      exit: { slot: number | null, worker: number, pid: number | null, code: number | null, signal: string | null,
        hasStarted?: boolean, isProgram?: boolean, isAsTold?: boolean, isOutOfMemory?: boolean }
    ): { memoryKind: 'heap-out-of-memory' | 'kernel-out-of-memory' | null, stderr: string[], said: string | null,
      note: ExitNote | null }
    {
      const { slot, worker, pid, code, signal, isOutOfMemory } = exit
      const stderr = readTail(slot, worker)
      // A record without one of its parts is better than none.
      const note = attempt(() => readNote(exit), null)
      const said = note ? null : attempt(() => readSaid(exit), null)
      if (signal === null && (code === 0 || code === null)) return { memoryKind: null, stderr, said, note }
      const byWords = () =>
        exit.isProgram && lacksMemory(note ? `${note.errorName}: ${note.errorMessage}` : said ?? '')
          ? 'heap-out-of-memory'
          : null
      return { memoryKind: attempt(() => lackedMemory({ pid, code, signal, stderr, isOutOfMemory }) ?? byWords(), null),
        stderr, said, note }
    },

    /** @returns with `detail.crash` and `detail.crashGroup` if a record was made */
    record<T extends Exit> (event: T, evidence: Evidence): T {
      if (!isOneOf(CRASH_CAUSES, event.cause)) return event
      const told = event.cause === 'boot-failure' ? withLastLines(event) : event
      const vitalSigns = attempt(() => vitals.lastMinute(Number(event.worker)), [])
      const record = attempt(() => hide(toRecord(told, { ...evidence, vitals: vitalSigns, at: now(), original })), null)
      const stored = record && storeCrash({ record, fingerprint: fingerprintOf({ ...record, said: evidence.said }) })
      if (!stored) return told
      return { ...told, detail: { ...told.detail, crash: stored.crash, crashGroup: stored.group } }
    }
  }

  function storeCrash (crash: { record: CrashRecord, fingerprint: string }) {
    try {
      writeWaiting()
      return writeCrash(crash)
    } catch {
      // The recorder of events gets the same error with the event itself, and reports it.
      return queueCrash(crash)
    }
  }

  function queueCrash (crash: { record: CrashRecord, fingerprint: string }) {
    const { record } = crash
    if (waiting.length < MAX_WAITING) waiting.push(crash)
    else lost = { count: (lost?.count ?? 0) + 1, from: lost?.from ?? record.at, to: record.at }
    return null
  }

  function writeWaiting () {
    while (waiting.length > 0) {
      writeCrash(waiting[0])
      waiting = waiting.slice(1)
    }
    if (lost) tellLost(lost)
    lost = null
  }

  function tellLost ({ count, from, to }: { count: number, from: string, to: string }) {
    const message = `${
      count === 1 ? '1 crash has' : `${count} crashes have`
    } no record: the history could not be written`
    soon(() =>
      events.publish({ type: 'crash.records-lost', actor: 'system', message, detail: { lost: count, from, to } })
    )
  }

  function writeCrash ({ record, fingerprint }: { record: CrashRecord, fingerprint: string }) {
    const culprit = culpritOf(record)
    const stored = store.record(fingerprint, record, { culprit })
    const type = stored.isNew ? 'crash.group-new' : stored.hasReturned ? 'crash.group-returned' : null
    // The event of the exit itself has to come first.
    if (type) soon(() => events.publish({ type, ...newsOf(record, stored, culprit) }))
    return stored
  }

  function readNote (
    { slot, worker, code, signal, isProgram = false, isAsTold = false }: Parameters<CrashRecorder['examine']>[0]
  ): ExitNote | null {
    const hasFailed = signal === null ? code !== 0 && code !== null : !OUTSIDE_SIGNALS.includes(signal)
    if (!isProgram || isAsTold || !hasFailed) return null
    return noteFrom(readTail(slot, worker, 'stderr', TRACE_LINES)) ??
      noteFrom(readTail(slot, worker, 'stdout', TRACE_LINES))
  }

  function readSaid (
    { slot, worker, code, signal, hasStarted = false, isProgram = false, isAsTold = false }: Parameters<
      CrashRecorder['examine']
    >[0]
  ): string | null {
    if (isAsTold || (signal !== null && (!isProgram || OUTSIDE_SIGNALS.includes(signal)))) return null
    if (hasStarted && code === 0) return null
    const lines = endOf(slot, worker)
    return faultIn(lines) ?? (hasStarted ? null : lines.at(-1) ?? null)
  }

  /** @returns the last lines of stderr, or else of stdout */
  function endOf (slot: number | null, worker: number): string[] {
    const said = lastLinesOf(readTail(slot, worker, 'stderr', TRACE_LINES))
    return said.length > 0 ? said : lastLinesOf(readTail(slot, worker, 'stdout'))
  }

  /** Adds the last lines of an app that does not start, which usually say why. */
  function withLastLines<T extends Exit> (event: T): T {
    const lastLines = endOf(event.slot ?? null, Number(event.worker))
    return lastLines.length === 0 ? event : { ...event, detail: { ...event.detail, lastLines } }
  }

  function readTail (slot: number | null, worker: number, stream: 'stdout' | 'stderr' = 'stderr',
    count: number = STDERR_LINES)
  {
    return attempt(() => logs.tail({ slot, stream, lines: count + OUR_LINES, worker }).filter(isOfApp).slice(-count),
      [])
  }
}

function isOfApp (line: string) {
  return !isOfDebugger(line) && !line.startsWith(OF_CLUSTERDECK)
}

function newsOf (record: CrashRecord, { crash, group, count }: { crash: number, group: number, count: number },
  culprit: string | null)
{
  const { cause, slot, worker, pid, release, rollout, kind, errorName, errorMessage, code, signal } = record
  // What is said of a hang names it.
  const what = [kind === 'hung' ? null : errorName, errorMessage].filter(Boolean).join(': ') || kind
  const message = `${what}${culprit ? `, in ${culprit}` : ''}`
  const detail = { crash, crashGroup: group, kind, errorName, culprit, count }
  return { cause, slot, worker, pid, release, rollout, code, signal, actor: 'system', message, detail }
}

/**
 * Two crashes with the same fingerprint are the same fault: it is made of the kind of error and the functions that led
 * to it, without what changes with every deploy (line numbers) or every request (numbers and names in messages).
 * `said`: by a program that has named no error. Returns `v1:` and a hash.
 */
export function fingerprintOf (
  { kind, errorName, errorMessage, code, signal, frames, nodeVersion, said }: Pick<CrashRecord,
    'errorName' | 'errorMessage' | 'code' | 'signal' | 'frames'> & { kind: string, nodeVersion?: string | null,
    said?: string | null }
): string {
  const way = frames.filter(({ isInApp }) => isInApp).slice(0, MAX_FRAMES).map((
    { function: name, file }
  ) => [name, file])
  const isError = errorName !== null
  // Some languages tell the file alone where something has failed.
  const isVague = nodeVersion === null && way.every(([name]) => name === null)
  const parts = isError || way.length > 0
    ? [isError ? 'error' : kind, errorName, ...way,
      ...(way.length === 0 || isVague ? [normaliseMessage(errorMessage ?? '')] : [])]
    : [kind, code, signal, ...(said ? [normaliseMessage(said)] : [])]
  return `v${VERSION}:${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)}`
}

/** Replaces the parts of a message that are likely to differ next time. */
export function normaliseMessage (message: string) {
  return message.slice(0, MAX_MESSAGE_CHARS).replace(/(["'`])(?:(?!\1)[^\\]|\\.){0,200}\1/g, '<text>').replace(
    /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi,
    '<uuid>'
  ).replace(/(?:\w+:\/)?(?:\/[\w.@%+-]+){2,}\/?/g, '<path>').replace(/\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b/gi,
    '<hex>').replace(/\d+(?:[.,:]\d+)*/g, '<n>')
}
