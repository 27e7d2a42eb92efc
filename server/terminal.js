import { styleText } from 'node:util'
import { isInTerminal, kindOf } from './events/kinds.js'
import { sentenceOf } from './events/sentences.js'
import { oneLine } from './system/one-line.js'

/** @typedef {'red' | 'yellow' | 'green' | 'cyan' | 'gray' | 'magenta' | 'bold'} Style */

/** @type {Readonly<Record<import('./events/kinds.js').Tone, Style>>} */
const COLOURS = Object.freeze({ ok: 'green', info: 'cyan', drain: 'magenta', warn: 'yellow', bad: 'red', idle: 'gray' })

/** @typedef {ReturnType<typeof linesTo>} Lines  what is told of one app */

/** What each line about one of several apps begins with, and each of its own. @param {string} name */
export const prefixOf = (name) => `${name} | `

/**
 * Prints what the master tells the person who started it.
 * @param {{ stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream }} options
 */
export function createTerminal ({ stdout, stderr }) {
  // EPIPE: nobody reads any more. The master runs on.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  return {
    ...linesTo({ stdout, stderr }),

    /** Prints the same about one of several apps. @param {string} name */
    of: (name) => linesTo({ stdout, stderr, prefix: prefixOf(name) })
  }
}

/** @param {{ stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream, prefix?: string }} options */
function linesTo ({ stdout, stderr, prefix = '' }) {
  let lastShown = ''

  const colourText = (/** @type {Style} */ style, /** @type {string} */ text) => stdout.isTTY ? styleText(style, text) : text

  /** @param {string} text */
  function writeLine (text) {
    stdout.write(`${prefix}${text}\n`)
  }

  /** Shows the output of a worker that did not start, once. A terminal has it already (logs.mirror). @param {string[]} [lines] */
  function showLastLines (lines = []) {
    const text = lines.map((each) => `  | ${oneLine(each)}`).join(`\n${prefix}`)
    if (stdout.isTTY || text === '' || text === lastShown) return
    lastShown = text
    writeLine(text)
  }

  return {
    line: writeLine,

    /** @param {string} text  why this master ends, or does less than it should */
    fail (text) { stderr.write(`clusterdeck: ${prefix}${oneLine(text)}\n`) },

    /** @param {string} text from the app */
    quote (text) { writeLine(colourText('gray', oneLine(text))) },

    /** Tells how a start has understood its entry. @param {{ said: string | null, notes: string[] }} launch */
    resolved ({ said, notes }) {
      if (said !== null) writeLine(oneLine(said))
      for (const note of notes) writeLine(colourText('gray', oneLine(`  ${note}`)))
    },

    /**
     * Only a terminal gets a link that signs in: files and pipes may have other readers.
     * @param {{ version: string, entry: string, workers: number, addresses: string[], admin: { publicUrl: string, signInLink: () => string }, bootMs: number }} start
     */
    started ({ version, entry, workers, addresses, admin, bootMs }) {
      writeLine(colourText('bold', `clusterdeck ${version}`) + `  ${workers} ${workers === 1 ? 'worker' : 'workers'} ready in ${bootMs} ms  ${oneLine(entry)}`)
      for (const address of addresses) writeLine(`  app    ${colourText('cyan', oneLine(address))}`)
      writeLine(`  admin  ${colourText('cyan', stdout.isTTY ? admin.signInLink() : admin.publicUrl)}`)
      writeLine(colourText('gray', stdout.isTTY ? '         (one-time link; `clusterdeck open` prints another)' : '         (`clusterdeck open` prints a link that signs in)'))
    },

    /** @param {import('./events/stream.js').DeckEvent} event */
    show (event) {
      if (!isInTerminal(event)) return
      writeLine(eventLine(event, colourText))
      showLastLines(event.detail?.lastLines)
    }
  }
}

/** @param {import('./events/stream.js').DeckEvent} event @param {(style: Style, text: string) => string} [colourText] */
export function eventLine (event, colourText = (_, text) => text) {
  return `${colourText('gray', event.at.slice(11, 19))} ${colourText(COLOURS[kindOf(event).tone], event.type)} ${oneLine(sentenceOf(event))}`
}
