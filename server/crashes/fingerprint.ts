import { createHash } from 'node:crypto'
import type { CrashRecord } from '../../db/crashes.ts'

/** It has to go up with every change of how crashes are grouped; existing groups then stay as they are. */
const VERSION = 1
const MAX_FRAMES = 10
const MAX_MESSAGE_CHARS = 500

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
