// Starts a program in its own place: whoever has started this process gets what answers for the program's bind(2) and
// listen(2), and the program then has its pid, its output and its parent.
import { readSync, writeSync } from 'node:fs'
import { loadSystemCalls } from './system-calls.js'

/** A socket to whoever has started this; Node closes it for the program. */
const CHANNEL = 3
/** Above what a program numbers its own descriptors with. */
const LISTENER_ABOVE = 200
/** As shells have it. */
const NOT_EXECUTABLE = 126

const order = readLine()
if (order !== null) launch(JSON.parse(order))
// Only where no other program has taken the place of this one.
process.exitCode = NOT_EXECUTABLE

/** @param {{ file: string, args: string[], env: Record<string, string> }} program  `args`: its own name is the first */
function launch ({ file, args, env }) {
  const calls = loadSystemCalls()
  if (calls === null) return tell({ failed: 'it takes Linux on x86-64 or arm64, and the optional package koffi' })
  tell(calls.askBeforeBind(LISTENER_ABOVE))
  if (readLine() === null) return
  tell({ failed: calls.execute(file, args, Object.entries(env).map(([name, value]) => `${name}=${value}`)) })
}

/** @param {object} message */
function tell (message) {
  writeSync(CHANNEL, `${JSON.stringify(message)}\n`)
}

/** @returns {string | null} null: nobody is there any more */
function readLine () {
  const chunks = []
  const chunk = Buffer.alloc(65_536)
  do {
    const length = readSync(CHANNEL, chunk)
    if (length === 0) return null
    chunks.push(Buffer.from(chunk.subarray(0, length)))
  } while (chunks[chunks.length - 1].at(-1) !== 0x0a)
  return Buffer.concat(chunks).toString()
}
