import { writeFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { listRequests, type OpenRequest } from './request-list.ts'
import type { Channel } from './channel.ts'
import type { createFatalGrace } from './fatal-grace.ts'
import type { Requests } from './requests.ts'

const MAX_TEXT_CHARS = 16_384
const MAX_NAME_CHARS = 200
const MAX_CAUSES = 8
const MAX_CAUSE_STACK_CHARS = 4096

/** The report of a dying worker on its end. All of it is bounded, whatever was thrown. */
export type CrashNote = {
  /** ms since the epoch */
  at: number,
  kind: 'exception' | 'unhandled-rejection',
  errorName: string,
  errorMessage: string,
  /** null: what was thrown is no error */
  stack: string | null,
  /** outermost first, of an AggregateError its errors; `depth` 1 belongs to the error itself */
  causes: ErrorLink[],
  /** in flight, oldest first */
  requests: OpenRequest[],
  uptimeMs: number,
  nodeVersion: string,
  /** of process.memoryUsage(), in bytes */
  memory: Record<string, number>
}
type ErrorLink = { depth: number, errorName: string, errorMessage: string, stack: string | null }

/**
 * Leaves the error that ends this process in a file for the master. Written synchronously: what a dying process sends
 * over IPC can be lost with it, so that is the way only where there is no other. The 'uncaughtExceptionMonitor' changes
 * nothing of Node's own handling; an app with a handler of its own may live on, so the record says when it was written.
 */
export function recordCrashes (file: string,
  { channel, requests, fatalGrace }: { channel: Channel, requests: Requests,
    fatalGrace: ReturnType<typeof createFatalGrace> })
{
  process.on('uncaughtExceptionMonitor', (error, origin) => {
    // Only the first error ended the process; others may follow from it.
    if (fatalGrace.isDying()) return fatalGrace.endNow()
    const note = takeNote(error, origin)
    if (note) leaveNote(note)
    fatalGrace.begin(error, origin, note)
  })

  function takeNote (error: unknown, origin: string) {
    try {
      return describeCrash(error, origin, requests.inFlight())
    } catch {
      // The app may have replaced what is used here. The error still reaches stderr, and the exit code reaches the
      // master.
      return null
    }
  }

  function leaveNote (note: CrashNote) {
    try {
      writeFileSync(file, JSON.stringify(note), { mode: 0o600 })
    } catch {
      // ENOSPC; EACCES where the app has dropped its privileges since.
      channel.send({ type: 'crash-note', note })
    }
  }
}

/** `error`: anything may be thrown, and its getters may throw again; `origin`: as Node tells it */
export function describeCrash (error: unknown, origin: string,
  requests: { method: string, path: string, ageMs: number }[]): CrashNote
{
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage()
  return { at: Date.now(), kind: origin === 'unhandledRejection' ? 'unhandled-rejection' : 'exception',
    ...describeError(error, MAX_TEXT_CHARS), causes: causesOf(error), requests: listRequests(requests),
    uptimeMs: Math.round(process.uptime() * 1000), nodeVersion: process.version,
    memory: { rssBytes: rss, heapTotalBytes: heapTotal, heapUsedBytes: heapUsed, externalBytes: external,
      arrayBuffersBytes: arrayBuffers } }
}

function describeError (error: unknown, maxStackChars: number) {
  try {
    if (error instanceof Error) {
      const stack = textOf(error, 'stack')
      return { errorName: clipText(textOf(error, 'name') ?? 'Error', MAX_NAME_CHARS),
        errorMessage: clipText(textOf(error, 'message') ?? '(it cannot be read)', MAX_TEXT_CHARS),
        stack: stack && clipText(stack, maxStackChars) }
    }
    const text = typeof error === 'string' ? error : inspect(error, { depth: 2 })
    return { errorName: error === null ? 'null' : typeof error, errorMessage: clipText(text, MAX_TEXT_CHARS),
      stack: null }
  } catch {
    return { errorName: 'unknown', errorMessage: 'the thrown value could not be read', stack: null }
  }
}

/** @returns breadth first, each error once */
function causesOf (error: unknown): ErrorLink[] {
  const links: ErrorLink[] = []
  const seen = new Set([error])
  const waiting: { error: unknown, depth: number }[] = [{ error, depth: 0 }]
  for (let next; links.length < MAX_CAUSES && (next = waiting.shift());) {
    const { error: one, depth } = next
    if (depth > 0) links.push({ depth, ...describeError(one, MAX_CAUSE_STACK_CHARS) })
    for (const below of belowOf(one)) {
      if (seen.has(below) || waiting.length >= MAX_CAUSES) continue
      seen.add(below)
      waiting.push({ error: below, depth: depth + 1 })
    }
  }
  return links
}

function belowOf (error: unknown): unknown[] {
  try {
    if (!(error instanceof Error)) return []
    const errors = 'errors' in error ? error.errors : []
    return [...('cause' in error ? [error.cause] : []), ...(Array.isArray(errors) ? errors.slice(0, MAX_CAUSES) : [])]
  } catch {
    return []
  }
}

/** Null: it is no text, or its getter throws */
function textOf (error: Error, property: 'name' | 'message' | 'stack'): string | null {
  try {
    return typeof error[property] === 'string' ? error[property] : null
  } catch {
    return null
  }
}

function clipText (text: unknown, maxChars: number) {
  return String(text).slice(0, maxChars)
}
