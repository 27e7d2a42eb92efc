import { createHmac } from 'node:crypto'
import { parseEnv } from 'node:util'
import { DeckError } from '../errors.js'
import { readSmallFile } from './small-file.js'

/**
 * The variables that the configuration sets for workers. Their values never leave this process. The history keeps marks of them:
 * keyed digests, which only show that a value has changed.
 * @typedef {Record<string, string | undefined>} Variables  undefined: the variable is not set
 * @typedef {Record<string, string>} Marks  by name
 */

const MARK_CHARS = 16
/** A shell, a terminal or the service manager sets these anew at each start, so a change of them says nothing about the app. */
const PASSING = new RegExp(`^(${[
  'CLUSTERDECK_.*', '_', 'PWD', 'OLDPWD', 'SHLVL', 'WINDOWID', 'SSH_.*', 'XDG_SESSION_ID', 'INVOCATION_ID', 'JOURNAL_STREAM', 'SYSTEMD_EXEC_PID',
  'NOTIFY_SOCKET', 'WATCHDOG_.*', 'LISTEN_.*', 'MEMORY_PRESSURE_.*', 'MANAGERPID'
].join('|')})$`)

/**
 * Reads `envFile`, and puts `env` over it.
 * @param {{ env: Record<string, string | null>, envFile?: string }} config
 * @returns {Promise<Variables>}
 * @throws {DeckError} invalid-config
 */
export async function readVariables ({ env, envFile }) {
  const given = { ...(envFile === undefined ? {} : await readFile(envFile)), ...env }
  return Object.fromEntries(Object.entries(given).map(([name, value]) => [name, value ?? undefined]))
}

/** @param {string} file */
async function readFile (file) {
  const refuse = (/** @type {string} */ why, /** @type {unknown} */ cause) => new DeckError('invalid-config', `envFile: expected a file of NAME=value lines, received ${file}, ${why}`, { cause })
  const text = (await readSmallFile(file, refuse)).toString()
  // The system would cut a value at a NUL, so node refuses to start a process with one.
  if (text.includes('\0')) throw refuse('which is no text', undefined)
  // A byte order mark would become part of the first name.
  return parseEnv(text.replace(/^\uFEFF/, ''))
}

/**
 * @param {Variables} variables @param {string} key
 * @param {Record<string, string | undefined>} inherited  of the shell that the app is from: workers have them too
 * @returns {Marks} of all variables of a worker
 */
export function markVariables (variables, key, inherited) {
  const all = Object.entries({ ...inherited, ...variables }).filter(([name, value]) => value !== undefined && !PASSING.test(name))
  return Object.fromEntries(all.map(([name, value]) => [name, keyedDigest(key, [name, value]).slice(0, MARK_CHARS)]))
}

/** @param {string} key @param {unknown} content  plain data; the order of an object's keys counts @returns {string} */
export function keyedDigest (key, content) {
  return createHmac('sha256', key).update(JSON.stringify(content)).digest('hex')
}

/** @param {string} key @param {Marks} marks */
export function digestMarks (key, marks) {
  return keyedDigest(key, Object.entries(marks).sort(([a], [b]) => a < b ? -1 : 1))
}

/** @param {Marks} before @param {Marks} now @returns {string[]} the names that are new, gone or have another value */
export function changedNames (before, now) {
  return [...new Set([...Object.keys(before), ...Object.keys(now)])].filter((name) => before[name] !== now[name]).sort()
}
