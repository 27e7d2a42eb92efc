import { createHash } from 'node:crypto'

/** Goes up when what follows would sort crashes differently: groups of before then stay as they are. */
const VERSION = 1
const MAX_FRAMES = 10
const MAX_MESSAGE_CHARS = 500

/**
 * What makes two crashes the same fault: the kind of error and the way through the app that led to it, without what
 * changes with every deploy (line numbers) or every request (numbers and names in messages).
 * @param {{ kind: string, errorName: string | null, errorMessage: string | null, code: number | null, signal: string | null, frames: import('./stack-frames.js').Frame[] }} crash
 * @returns {string} `v1:` and a hash
 */
export function fingerprintOf ({ kind, errorName, errorMessage, code, signal, frames }) {
  const way = frames.filter(({ isInApp }) => isInApp).slice(0, MAX_FRAMES).map(({ function: name, file }) => [name, file])
  const isError = errorName !== null
  const parts = isError || way.length > 0
    ? [isError ? 'error' : kind, errorName, ...(way.length > 0 ? way : [normaliseMessage(errorMessage ?? '')])]
    : [kind, code, signal]
  return `v${VERSION}:${createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 32)}`
}

/**
 * A message without what is likely to be another one next time.
 * @param {string} message
 */
export function normaliseMessage (message) {
  return message.slice(0, MAX_MESSAGE_CHARS)
    .replace(/(["'`])(?:(?!\1)[^\\]|\\.){0,200}\1/g, '<text>')
    .replace(/\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b/gi, '<uuid>')
    .replace(/(?:\w+:\/)?(?:\/[\w.@%+-]+){2,}\/?/g, '<path>')
    .replace(/\b0x[0-9a-f]+\b|\b(?=[a-f]*\d)[0-9a-f]{8,}\b/gi, '<hex>')
    .replace(/\d+(?:[.,:]\d+)*/g, '<n>')
}
