import { styleText } from 'node:util'
import { oneLine } from '../system/one-line.js'

/** @typedef {'stdout' | 'stderr'} Stream */
/** @typedef {ReturnType<typeof createPrefixed>} Prefixed */

const COLOURS = /** @type {const} */ (['cyan', 'green', 'yellow', 'magenta', 'blue'])
/** A longer one is shown in parts: it may have no end. */
const MAX_LINE_CHARS = 64 * 1024

/**
 * The output of several programs, a line at a time, each with the name of its program in front.
 * @param {readonly string[]} names of all
 * @param {{ stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream & { isTTY?: boolean }, env: Record<string, string | undefined> }} terminal
 */
export function createPrefixed (names, { env, ...streams }) {
  const width = Math.max(...names.map((name) => name.length))

  return {
    /** @param {string} name @param {string} text of this program's own */
    say (name, text) { streams.stderr.write(line(name, 'stderr', text)) },

    /**
     * Shows all that comes, no faster than it is taken.
     * @param {string} name @param {NodeJS.ReadableStream} source @param {Stream} stream
     * @returns {Promise<void>} once there is no more
     */
    async pass (name, source, stream) {
      for await (const lines of linesOf(source)) await write(stream, lines.map((text) => line(name, stream, text)).join(''))
    }
  }

  /** @param {string} name @param {Stream} stream @param {string} text */
  function line (name, stream, text) {
    const prefix = `${name.padEnd(width)} |`
    const isColoured = streams[stream].isTTY && !env.NO_COLOR && env.TERM !== 'dumb'
    return `${isColoured ? styleText(COLOURS[names.indexOf(name) % COLOURS.length], prefix, { validateStream: false }) : prefix} ${oneLine(text.replaceAll('\t', '  '))}\n`
  }

  /** @param {Stream} stream @param {string} text @returns {Promise<void>} */
  function write (stream, text) {
    // With an error where nobody reads any more, which is as good as read.
    return new Promise((resolve) => { streams[stream].write(text, () => resolve()) })
  }
}

/** @param {NodeJS.ReadableStream} source @returns {AsyncGenerator<string[]>} whole lines, some at a time */
async function * linesOf (source) {
  let rest = ''
  try {
    for await (const chunk of source.setEncoding('utf8')) {
      const lines = (rest + chunk).split(/\r?\n/)
      rest = /** @type {string} */ (lines.pop())
      if (rest.length > MAX_LINE_CHARS) lines.push(rest.slice(0, MAX_LINE_CHARS))
      rest = rest.length > MAX_LINE_CHARS ? rest.slice(MAX_LINE_CHARS) : rest
      if (lines.length > 0) yield lines
    }
  } catch {
    // It was let go of in the middle.
  }
  if (rest !== '') yield [rest]
}
