import { readFileSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { inspect } from 'node:util'

const MAX_FILE_BYTES = 8 * 1024 * 1024

/**
 * What Node writes to stderr of an exception that ends the process: the line where it was thrown, the error with its
 * stack and causes, and its version. The line is left out where the stack does not say it, as for errors made inside Node.
 * @param {Error} error @param {string} origin
 */
export function fatalText (error, origin) {
  const shown = shownError(error)
  const version = `\n\nNode.js ${process.version}\n`
  return `${sourceExcerpt(error, origin)}${shown}${version}`
}

/** As lib/internal/process/execution.js and node_errors.cc have it. @param {Error} error */
function shownError (error) {
  try {
    const colors = process.stderr.isTTY === true && process.stderr.hasColors?.()
    return inspect(error, { colors, customInspect: false, depth: Math.max(inspect.defaultOptions.depth ?? 2, 5) })
  } catch {
    return String(error.stack)
  }
}

/** @param {Error} error @param {string} origin */
function sourceExcerpt (error, origin) {
  try {
    const [, file, line, column] = /\n {4}at (?:.*? \()?((?:file:\/\/)?\/[^()\n]*):(\d+):(\d+)\)?(?:\n|$)/.exec(firstFrame(error)) ?? []
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

/** @param {Error} error its first line of stack, after a message that may have lines of its own */
function firstFrame (error) {
  const stack = String(error.stack)
  const head = stack.indexOf(error.message) === -1 ? 0 : stack.indexOf(error.message) + error.message.length
  const start = stack.indexOf('\n    at ', head)
  return start === -1 ? '' : stack.slice(start).split('\n', 2).join('\n')
}
