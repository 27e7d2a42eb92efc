import { styleText } from 'node:util'
import { isInTerminal, kindOf, type Tone } from './events/kinds.ts'
import { sentenceOf } from './events/sentences.ts'
import { oneLine } from './system/one-line.ts'
import type { Config } from './config/config.ts'
import type { DeckEvent } from './events/stream.ts'

type Style = 'red' | 'yellow' | 'green' | 'cyan' | 'gray' | 'magenta' | 'bold'

const COLOURS: Readonly<Record<Tone, Style>> = Object.freeze({ ok: 'green', info: 'cyan', drain: 'magenta',
  warn: 'yellow', bad: 'red', idle: 'gray' })

/** what is told of one app */
export type Lines = ReturnType<typeof linesTo>
export type Terminal = ReturnType<typeof createTerminal>

/** What each line about one of several apps begins with, and each of its own. */
export const prefixOf = (name: string) => `${name} | `

/** Prints what the master tells the person who started it. */
export function createTerminal (
  { stdout, stderr }: { stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream }
) {
  // EPIPE: nobody reads any more. The master runs on.
  for (const stream of [stdout, stderr]) stream.on('error', () => {})
  return {
    ...linesTo({ stdout, stderr }),

    /** Prints the same about one of several apps. */
    of: (name: string) => linesTo({ stdout, stderr, prefix: prefixOf(name) })
  }
}

function linesTo (
  { stdout, stderr, prefix = '' }: { stdout: NodeJS.WritableStream & { isTTY?: boolean }, stderr: NodeJS.WritableStream,
    prefix?: string }
) {
  let lastShown = ''

  const colourText = (style: Style, text: string) => stdout.isTTY ? styleText(style, text) : text

  function writeLine (text: string) {
    stdout.write(`${prefix}${text}\n`)
  }

  /** Shows the output of a worker that did not start, once. A terminal has it already (logs.mirror). */
  function showLastLines (lines: string[] = []) {
    const text = lines.map((each) => `  | ${oneLine(each)}`).join(`\n${prefix}`)
    if (stdout.isTTY || text === '' || text === lastShown) return
    lastShown = text
    writeLine(text)
  }

  return {
    line: writeLine,

    /** `text`: why this master ends, or does less than it should */
    fail (text: string) {
      stderr.write(`clusterdeck: ${prefix}${oneLine(text)}\n`)
    },

    /** `text`: from the app */
    quote (text: string) {
      writeLine(colourText('gray', oneLine(text)))
    },

    /** Tells how a start has understood its entry. */
    resolved ({ launch: { said, notes } = { said: null, notes: [] }, appNode }: Pick<Config, 'launch' | 'appNode'>) {
      if (said !== null) writeLine(oneLine(said))
      for (const note of [...notes, ...appNode?.instead === undefined ? [] : [appNode.instead]])
        writeLine(colourText('gray', oneLine(`  ${note}`)))
    },

    /** Only a terminal gets a link that signs in: files and pipes may have other readers. */
    started (
      { version, entry, workers, addresses, admin, bootMs }: { version: string, entry: string, workers: number,
        addresses: string[], admin: { publicUrl: string, signInLink: () => string }, bootMs: number }
    ) {
      writeLine(
        colourText('bold', `clusterdeck ${version}`) +
          `  ${workers} ${workers === 1 ? 'worker' : 'workers'} ready in ${bootMs} ms  ${oneLine(entry)}`
      )
      for (const address of addresses) writeLine(`  app    ${colourText('cyan', oneLine(address))}`)
      writeLine(`  admin  ${colourText('cyan', stdout.isTTY ? admin.signInLink() : admin.publicUrl)}`)
      writeLine(
        colourText('gray', stdout.isTTY
          ? '         (one-time link; `clusterdeck open` prints another)'
          : '         (`clusterdeck open` prints a link that signs in)')
      )
    },

    show (event: DeckEvent) {
      if (!isInTerminal(event)) return
      writeLine(eventLine(event, colourText))
      showLastLines(event.detail?.lastLines)
    }
  }
}

export function eventLine (event: DeckEvent, colourText: (style: Style, text: string) => string = (_, text) => text) {
  return `${colourText('gray', event.at.slice(11, 19))} ${colourText(COLOURS[kindOf(event).tone], event.type)} ${
    oneLine(sentenceOf(event))
  }`
}
