import { Writable } from 'node:stream'
import { configFromOptions, loadSchema } from '../config/config.js'
import { DeckError } from '../errors.js'

/** @typedef {import('./types.js').StartOptions} StartOptions */

/** The options of start() that no config file has. @type {Readonly<Record<string, { expected: string, isFine: (value: any) => boolean }>>} */
const SURROUNDINGS = Object.freeze({
  configFile: { expected: 'a path', isFine: (value) => typeof value === 'string' && value !== '' },
  stdout: { expected: 'a stream that can be written', isFine: isWritable },
  stderr: { expected: 'a stream that can be written', isFine: isWritable },
  signal: { expected: 'an AbortSignal', isFine: (value) => value instanceof AbortSignal }
})

/**
 * Reads and checks the options of start().
 * @param {StartOptions} options
 * @returns {Promise<{ config: import('../config/config.js').Config, surroundings: import('../host/host.js').Surroundings, signal: AbortSignal | undefined }>}
 * @throws {DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function readStart (options) {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) throw new DeckError('invalid-config', `options: expected an object, received ${kindOf(options)}`)
  for (const [name, { expected, isFine }] of Object.entries(SURROUNDINGS)) {
    const value = /** @type {Record<string, unknown>} */ (options)[name]
    if (value !== undefined && !isFine(value)) throw new DeckError('invalid-config', `${name}: expected ${expected}, received ${kindOf(value)}`)
  }
  const { configFile, stdout, stderr, signal, ...said } = options
  const cwd = process.cwd()
  const config = await configFromOptions(said, { configFile, cwd })
  // A program may change options as soon as it has the deck.
  await loadSchema()
  // Each deploy reads the file again, but keeps the options of the program.
  const kept = structuredClone(said)
  return {
    config,
    signal,
    surroundings: {
      isGuest: true,
      stdout: passOn(stdout),
      stderr: passOn(stderr),
      reload: (/** @type {string | undefined} */ launchIn) => configFromOptions(kept, { configFile, cwd, isAgain: true, launchIn })
    }
  }
}

/**
 * Wraps a stream of the program, which outlives the deck, so that the deck leaves no listeners on it.
 * @param {(NodeJS.WritableStream & { isTTY?: boolean }) | undefined} stream
 */
function passOn (stream) {
  const through = new Writable({
    decodeStrings: false,
    write (text, _encoding, done) {
      stream?.write(text)
      done()
    }
  })
  return Object.assign(through, { isTTY: stream?.isTTY === true })
}

/** @param {any} value */
function isWritable (value) {
  return typeof value?.write === 'function'
}

/** @param {unknown} value */
function kindOf (value) {
  if (value === null) return 'null'
  return Array.isArray(value) ? 'a list' : value === '' ? 'an empty text' : value === undefined ? 'undefined' : `a ${typeof value}`
}
