import { inspect } from 'node:util'
import { listRequests } from './request-list.js'

const MAX_TEXT_CHARS = 16_384
const MAX_NAME_CHARS = 200
const MAX_CAUSES = 8
const MAX_CAUSE_STACK_CHARS = 4096

/**
 * The report of a dying worker on its end. All of it is bounded, whatever was thrown.
 * @typedef {object} CrashNote
 * @property {number} at  ms since the epoch
 * @property {'exception' | 'unhandled-rejection'} kind
 * @property {string} errorName
 * @property {string} errorMessage
 * @property {string | null} stack  null: what was thrown is no error
 * @property {ErrorLink[]} causes  outermost first, of an AggregateError its errors; `depth` 1 belongs to the error itself
 * @property {import('./request-list.js').OpenRequest[]} requests  in flight, oldest first
 * @property {number} uptimeMs
 * @property {string} nodeVersion
 * @property {Record<string, number>} memory  of process.memoryUsage(), in bytes
 *
 * @typedef {{ depth: number, errorName: string, errorMessage: string, stack: string | null }} ErrorLink
 */

/**
 * @param {unknown} error anything may be thrown, and its getters may throw again
 * @param {string} origin as Node tells it
 * @param {{ method: string, path: string, ageMs: number }[]} requests
 * @returns {CrashNote}
 */
export function describeCrash (error, origin, requests) {
  const { rss, heapTotal, heapUsed, external, arrayBuffers } = process.memoryUsage()
  return {
    at: Date.now(),
    kind: origin === 'unhandledRejection' ? 'unhandled-rejection' : 'exception',
    ...describeError(error, MAX_TEXT_CHARS),
    causes: causesOf(error),
    requests: listRequests(requests),
    uptimeMs: Math.round(process.uptime() * 1000),
    nodeVersion: process.version,
    memory: { rssBytes: rss, heapTotalBytes: heapTotal, heapUsedBytes: heapUsed, externalBytes: external, arrayBuffersBytes: arrayBuffers }
  }
}

/** @param {unknown} error @param {number} maxStackChars */
function describeError (error, maxStackChars) {
  try {
    if (error instanceof Error) {
      const stack = textOf(error, 'stack')
      return {
        errorName: clipText(textOf(error, 'name') ?? 'Error', MAX_NAME_CHARS),
        errorMessage: clipText(textOf(error, 'message') ?? '(it cannot be read)', MAX_TEXT_CHARS),
        stack: stack && clipText(stack, maxStackChars)
      }
    }
    const text = typeof error === 'string' ? error : inspect(error, { depth: 2 })
    return { errorName: error === null ? 'null' : typeof error, errorMessage: clipText(text, MAX_TEXT_CHARS), stack: null }
  } catch {
    return { errorName: 'unknown', errorMessage: 'the thrown value could not be read', stack: null }
  }
}

/** @param {unknown} error @returns {ErrorLink[]} breadth first, each error once */
function causesOf (error) {
  /** @type {ErrorLink[]} */
  const links = []
  const seen = new Set([error])
  /** @type {{ error: unknown, depth: number }[]} */
  const waiting = [{ error, depth: 0 }]
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

/** @param {unknown} error @returns {unknown[]} */
function belowOf (error) {
  try {
    if (!(error instanceof Error)) return []
    const errors = 'errors' in error ? error.errors : []
    return [...('cause' in error ? [error.cause] : []), ...(Array.isArray(errors) ? errors.slice(0, MAX_CAUSES) : [])]
  } catch {
    return []
  }
}

/** @param {Error} error @param {'name' | 'message' | 'stack'} property @returns {string | null} null: it is no text, or its getter throws */
function textOf (error, property) {
  try {
    return typeof error[property] === 'string' ? error[property] : null
  } catch {
    return null
  }
}

/** @param {unknown} text @param {number} maxChars */
function clipText (text, maxChars) {
  return String(text).slice(0, maxChars)
}
