import { styleText } from 'node:util'
import { oneLine } from '../system/one-line.ts'
import { drawnStream } from './shown-stream.ts'

export type Stream = 'stdout' | 'stderr'
export type Prefixed = ReturnType<typeof createPrefixed>

const COLOURS: readonly ('cyan' | 'green' | 'yellow' | 'magenta' | 'blue')[] = ['cyan', 'green', 'yellow', 'magenta',
  'blue']

type Output = NodeJS.WritableStream & { isTTY?: boolean }

/** Prints the output of several programs, with the name of the program before each line. `names`: of all that are known. */
export function createPrefixed (names: readonly string[],
  { env, stdout, stderr }: { stdout: Output, stderr: Output, env: Record<string, string | undefined> })
{
  const streams = { stdout: drawnStream(stdout), stderr: drawnStream(stderr) }
  const width = Math.max(0, ...names.map((name) => name.length))

  return {
    /** Says something about a program. */
    say (name: string, text: string) {
      streams.stderr.write(prefixLine(name, 'stderr', text))
    },

    /** `text`: a line of its result */
    print (name: string, text: string) {
      streams.stdout.write(prefixLine(name, 'stdout', text))
    },

    /** Shows lines that it has written, and is slow where they are taken slowly. */
    async show (name: string, stream: Stream, lines: readonly string[]) {
      await writeText(stream, lines.map((text) => prefixLine(name, stream, text)).join(''))
    }
  }

  function prefixLine (name: string, stream: Stream, text: string) {
    const prefix = `${name.padEnd(width)} |`
    const isColoured = streams[stream].isTTY && !env.NO_COLOR && env.TERM !== 'dumb'
    const shown = isColoured
      ? styleText(COLOURS[Math.max(0, names.indexOf(name)) % COLOURS.length], prefix, { validateStream: false })
      : prefix
    return `${shown} ${oneLine(text.replaceAll('\t', '  '))}\n`
  }

  function writeText (stream: Stream, text: string): Promise<void> {
    // An error means that nobody reads any more; the lines are dropped then.
    return new Promise((resolve) => {
      streams[stream].write(text, () => resolve())
    })
  }
}
