import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

const MAX_FILE_BYTES = 8 * 1024 * 1024

/**
 * Makes the text that Node writes to stderr when an exception ends the process: the line where it was thrown, the error
 * with its stack and causes, and Node's version. The line is left out where the stack does not name it, as inside Node.
 */
export function fatalText (error: Error, origin: string) {
  const shown = shownError(error)
  const version = `\n\nNode.js ${process.version}\n`
  return `${sourceExcerpt(error, origin)}${shown}${version}`
}

/** Follows lib/internal/process/execution.js and node_errors.cc. */
function shownError (error: Error) {
  try {
    const colors = process.stderr.isTTY === true && process.stderr.hasColors?.()
    return inspect(error, { colors, customInspect: false, depth: Math.max(inspect.defaultOptions.depth ?? 2, 5) })
  } catch {
    return String(error.stack)
  }
}

function sourceExcerpt (error: Error, origin: string) {
  try {
    const [, file, line, column] =
      /\n {4}at (?:.*? \()?((?:file:\/\/)?\/[^()\n]*):(\d+):(\d+)\)?(?:\n|$)/.exec(firstFrame(error)) ?? []
    if (file === undefined) return ''
    const path = file.startsWith('file:') ? fileURLToPath(file) : file
    if (statSync(path).size > MAX_FILE_BYTES) return ''
    const source = readFileSync(path, 'utf8').split(/\r?\n/)[Number(line) - 1]
    const made = source.slice(0, Number(column) - 1)
    // A statement `throw new Error()` is marked at its beginning; a rejection, where its error was made.
    const thrown = origin === 'unhandledRejection' ? null : /\bthrow\s+$/.exec(made)
    const mark = made.slice(0, thrown?.index ?? made.length).replace(/[^\t]/g, ' ')
    return `${file}:${line}\n${source}\n${mark}^\n\n`
  } catch {
    // The file may be gone or another one by now.
    return ''
  }
}

/** Finds the first line of the stack, after a message that may have several lines. */
function firstFrame (error: Error) {
  const stack = String(error.stack)
  const head = stack.indexOf(error.message) === -1 ? 0 : stack.indexOf(error.message) + error.message.length
  const start = stack.indexOf('\n    at ', head)
  return start === -1 ? '' : stack.slice(start).split('\n', 2).join('\n')
}
