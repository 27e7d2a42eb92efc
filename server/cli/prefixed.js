import { styleText } from 'node:util'
import { oneLine } from '../system/one-line.js'
import { drawnStream } from './shown-stream.js'

/** @typedef {'stdout' | 'stderr'} Stream */
/** @typedef {ReturnType<typeof createPrefixed>} Prefixed */

/** @type {readonly ('cyan' | 'green' | 'yellow' | 'magenta' | 'blue')[]} */
const COLOURS = ['cyan', 'green', 'yellow', 'magenta', 'blue']

/**
 * Prints the output of several programs, with the name of the program before each line.
 * @param {readonly string[]} names of all that are known
 * @param {{ stdout: Output, stderr: Output, env: Record<string, string | undefined> }} terminal
 *
 * @typedef {NodeJS.WritableStream & { isTTY?: boolean }} Output
 */
export function createPrefixed (names, { env, stdout, stderr }) {
  const streams = { stdout: drawnStream(stdout), stderr: drawnStream(stderr) }
  const width = Math.max(0, ...names.map((name) => name.length))

  return {
    /** Says something about a program. @param {string} name @param {string} text */
    say (name, text) { streams.stderr.write(prefixLine(name, 'stderr', text)) },

    /** @param {string} name @param {string} text a line of its result */
    print (name, text) { streams.stdout.write(prefixLine(name, 'stdout', text)) },

    /**
     * Shows lines that it has written, and is slow where they are taken slowly.
     * @param {string} name @param {Stream} stream @param {readonly string[]} lines
     */
    async show (name, stream, lines) { await writeText(stream, lines.map((text) => prefixLine(name, stream, text)).join('')) }
  }

  /** @param {string} name @param {Stream} stream @param {string} text */
  function prefixLine (name, stream, text) {
    const prefix = `${name.padEnd(width)} |`
    const isColoured = streams[stream].isTTY && !env.NO_COLOR && env.TERM !== 'dumb'
    const shown = isColoured ? styleText(COLOURS[Math.max(0, names.indexOf(name)) % COLOURS.length], prefix, { validateStream: false }) : prefix
    return `${shown} ${oneLine(text.replaceAll('\t', '  '))}\n`
  }

  /** @param {Stream} stream @param {string} text @returns {Promise<void>} */
  function writeText (stream, text) {
    // An error means that nobody reads any more; the lines are dropped then.
    return new Promise((resolve) => { streams[stream].write(text, () => resolve()) })
  }
}
