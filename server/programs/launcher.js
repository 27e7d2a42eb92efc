// Starts a program in its own place: whoever has started this process gets what answers for the program's bind(2) and
// listen(2), and the program then has its pid, its output and its parent.
import { readSync, writeSync } from 'node:fs'
import { loadSystemCalls } from './system-calls.js'

/** A socket to whoever has started this; Node closes it for the program. */
const CHANNEL = 3
/** Above what a program numbers its own descriptors with. */
const LISTENER_ABOVE = 200
const NOT_EXECUTABLE = 126

const { file, args, env } = JSON.parse(readLine())
const calls = loadSystemCalls()
if (calls === null) {
  tell({ failed: 'it takes Linux on x86-64 or arm64, and the optional package koffi' })
} else {
  tell(calls.askBeforeBind(LISTENER_ABOVE))
  readLine()
  tell({ failed: calls.execute(file, args, Object.entries(env).map(([name, value]) => `${name}=${value}`)) })
}
process.exit(NOT_EXECUTABLE)

/** @param {object} message */
function tell (message) {
  writeSync(CHANNEL, `${JSON.stringify(message)}\n`)
}

function readLine () {
  const chunks = []
  const chunk = Buffer.alloc(65_536)
  do {
    const length = readSync(CHANNEL, chunk)
    // Nobody is there any more.
    if (length === 0) process.exit(NOT_EXECUTABLE)
    chunks.push(Buffer.from(chunk.subarray(0, length)))
  } while (chunks[chunks.length - 1].at(-1) !== 0x0a)
  return Buffer.concat(chunks).toString()
}
