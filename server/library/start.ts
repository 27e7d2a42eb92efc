import { Writable } from 'node:stream'
import { configFromOptions, loadSchema, type Config } from '../config/config.ts'
import { DeckError } from '../errors.ts'
import type { StartOptions } from './types.ts'
import type { Surroundings } from '../host/host.ts'

/** The options of start() that no config file has. */
const SURROUNDINGS: Readonly<Record<string, { expected: string, isFine: (value: unknown) => boolean }>> = Object.freeze(
  { configFile: { expected: 'a path', isFine: (value) => typeof value === 'string' && value !== '' },
    stdout: { expected: 'a stream that can be written', isFine: isWritable },
    stderr: { expected: 'a stream that can be written', isFine: isWritable },
    signal: { expected: 'an AbortSignal', isFine: (value) => value instanceof AbortSignal } }
)

/**
 * Reads and checks the options of start().
 * @throws {DeckError} invalid-config, unknown-option, entry-not-found
 */
export async function readStart (
  options: StartOptions
): Promise<
  { config: Config, reload: (launchIn?: string) => Promise<Config>, surroundings: Surroundings,
    signal: AbortSignal | undefined }
> {
  if (typeof options !== 'object' || options === null || Array.isArray(options))
    throw new DeckError('invalid-config', `options: expected an object, received ${kindOf(options)}`)
  for (const [name, { expected, isFine }] of Object.entries(SURROUNDINGS)) {
    const value = (options as Record<string, unknown>)[name]
    if (value !== undefined && !isFine(value))
      throw new DeckError('invalid-config', `${name}: expected ${expected}, received ${kindOf(value)}`)
  }
  const { configFile, stdout, stderr, signal, ...said } = options
  const cwd = process.cwd()
  const config = await configFromOptions(said, { configFile, cwd })
  // A program may change options as soon as it has the deck.
  await loadSchema()
  // Each deploy reads the file again, but keeps the options of the program.
  const kept = structuredClone(said)
  return { config, signal, reload: (launchIn) => configFromOptions(kept, { configFile, cwd, isAgain: true, launchIn }),
    surroundings: { isGuest: true, stdout: passOn(stdout), stderr: passOn(stderr) } }
}

/** Wraps a stream of the program, which outlives the deck, so that the deck leaves no listeners on it. */
function passOn (stream: (NodeJS.WritableStream & { isTTY?: boolean }) | undefined) {
  const through = new Writable({ decodeStrings: false, write (text, _encoding, done) {
    stream?.write(text)
    done()
  } })
  return Object.assign(through, { isTTY: stream?.isTTY === true })
}

function isWritable (value: unknown) {
  return typeof Object(value).write === 'function'
}

function kindOf (value: unknown) {
  if (value === null) return 'null'
  return Array.isArray(value)
    ? 'a list'
    : value === ''
    ? 'an empty text'
    : value === undefined
    ? 'undefined'
    : `a ${typeof value}`
}
