import { createHmac } from 'node:crypto'
import { parseEnv } from 'node:util'
import { DeckError } from '../errors.ts'
import { readSmallFile } from './small-file.ts'

// The variables that the configuration sets for workers. Their values never leave this process. The history keeps marks
// of them: keyed digests, which only show that a value has changed.

/** Undefined: the variable is not set. */
export type Variables = Record<string, string | undefined>
/** by name */
export type Marks = Record<string, string>

const MARK_CHARS = 16
/**
 * A shell, a terminal or the service manager sets these anew at each start, so a change of them says nothing about the
 * app.
 */
const PASSING = new RegExp(
  `^(${
    ['CLUSTERDECK_.*', '_', 'PWD', 'OLDPWD', 'SHLVL', 'WINDOWID', 'SSH_.*', 'XDG_SESSION_ID', 'INVOCATION_ID',
      'JOURNAL_STREAM', 'SYSTEMD_EXEC_PID', 'NOTIFY_SOCKET', 'WATCHDOG_.*', 'LISTEN_.*', 'FDSTORE',
      'MEMORY_PRESSURE_.*', 'MANAGERPID'].join('|')
  })$`
)

/**
 * Reads `envFile`, and puts `env` over it.
 * @throws {DeckError} invalid-config
 */
export async function readVariables (
  { env, envFile }: { env: Record<string, string | null>, envFile?: string }
): Promise<Variables> {
  const given = { ...(envFile === undefined ? {} : await readFile(envFile)), ...env }
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value ?? undefined]))
}

async function readFile (file: string) {
  const refuse = (why: string, cause: unknown) =>
    new DeckError('invalid-config', `envFile: expected a file of NAME=value lines, received ${file}, ${why}`, { cause })
  const text = (await readSmallFile(file, refuse)).toString()
  // The system would cut a value at a NUL, so node refuses to start a process with one.
  if (text.includes('\0')) throw refuse('which is no text', undefined)
  // A byte order mark would become part of the first name.
  return parseEnv(text.replace(/^\uFEFF/, ''))
}

/** Tells whether each shell sets it anew */
export const isPassing = (name: string): boolean => PASSING.test(name)

/** `inherited`: of the shell that the app is from: workers have them too @returns of all variables of a worker */
export function markVariables (variables: Variables, key: string,
  inherited: Record<string, string | undefined>): Marks
{
  const all = Object.entries({ ...inherited, ...variables }).filter(([name, value]) =>
    value !== undefined && !isPassing(name)
  )
  return Object.fromEntries(all.map(([name, value]) => [name, keyedDigest(key, [name, value]).slice(0, MARK_CHARS)]))
}

/** `content`: plain data; the order of an object's keys counts */
export function keyedDigest (key: string, content: unknown): string {
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex')
}

export function digestMarks (key: string, marks: Marks) {
  return keyedDigest(key, Object.entries(marks).sort(([a], [b]) => a < b ? -1 : 1))
}

/** @returns the names that are new, gone or have another value */
export function changedNames (before: Marks, now: Marks): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((name) => before[name] !== now[name]).sort()
}
